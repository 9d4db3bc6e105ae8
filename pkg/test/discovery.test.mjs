// A provider beside other programs in a page: found by a discovery library (EIP-6963), and with the user's wallet behind it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serveChain } from './lib/chain-server.mjs';
import { inPage } from './lib/in-page.mjs';
import { LIMIT } from './lib/wait.mjs';

let served;

before(async () => {
  served = await serveChain(5);
});
after(() => served.close());

test('a discovery library lists an announced provider, which proves reads and leaves signing to the injected wallet', LIMIT, () =>
  inPage(async (run) => {
    const work = async (options, account) => {
      const { createStore } = await import('/node_modules/mipd/dist/esm/index.js');
      const { announce, createProvider } = await import('/index.js');
      const calls = [];
      // What an extension puts into the page.
      globalThis.ethereum = {
        async request({ method, params }) {
          calls.push(method);
          if (method === 'eth_chainId') return '0x21';
          if (method === 'eth_sendTransaction') return `hash for ${params[0].chainId}`;
          return [account];
        },
      };
      const early = createStore();
      const provider = await createProvider({ ...options, signer: globalThis.ethereum });
      const info = { name: 'Rootlight', icon: 'data:image/svg+xml,<svg/>', rdns: 'org.example.rootlight' };
      const stop = announce(provider, info);
      const late = createStore();
      const names = [early, late].map((store) => store.getProviders().map(({ info }) => info.rdns));
      const found = late.findProvider({ rdns: info.rdns }).provider;
      const accounts = await found.request({ method: 'eth_requestAccounts' });
      const balance = await found.request({ method: 'eth_getBalance', params: [account, 'latest'] });
      const hash = await found.request({ method: 'eth_sendTransaction', params: [{ from: account, to: account }] });
      stop();
      const stopped = createStore().getProviders().length;
      provider.close();
      return { names, accounts, balance, hash, calls, stopped };
    };
    const [account] = await served.ask('eth_accounts');
    const found = await run(work, served.options, account);
    assert.deepEqual(found.names, [['org.example.rootlight'], ['org.example.rootlight']]);
    assert.deepEqual([found.accounts, found.balance, found.hash], [[account], '0x21e19e0c9bab2400000', 'hash for 0x21']);
    assert.deepEqual(found.calls, ['eth_requestAccounts', 'eth_chainId', 'eth_sendTransaction']);
    assert.equal(found.stopped, 0);
  }));
