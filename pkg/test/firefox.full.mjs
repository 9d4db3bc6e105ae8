// The package in Firefox: in a shared worker, a worker of its own and on the page's thread. It is part of `--full` only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveChain } from './lib/chain-server.mjs';
import { inFirefox } from './lib/firefox.mjs';

/** In the page: a client in each place, with events and stored headers; the end of a worker; a development chain. */
const scenario = async ({ options, account }) => {
  const { createProvider } = await import('/index.js');
  const { createDevChain } = await import('/dev.js');
  const notices = [];
  console.info = (...words) => notices.push(words.join(' '));
  const found = { notices };
  const open = async (name, more) => {
    const provider = await createProvider({ ...options, upstream: `${options.upstream}/${name}`, pollSeconds: 0.2, ...more });
    const heads = [];
    provider.on('message', ({ data }) => heads.push(data.result.number));
    await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
    const balance = await provider.request({ method: 'eth_getBalance', params: [account, '0x1'] });
    await fetch(`${options.upstream}/mine`, { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"evm_mine"}', headers: { 'content-type': 'application/json' } });
    for (let left = 200; left > 0 && heads.length === 0; left -= 1) await new Promise((resolve) => setTimeout(resolve, 50));
    found[name] = [balance, heads.length];
    return provider;
  };
  for (const [name, more] of [['default', {}], ['shared', { worker: 'shared' }], ['dedicated', { worker: 'dedicated' }], ['thread', { worker: false }]]) {
    (await open(name, more)).close();
  }
  let worker;
  const mortal = await open('mortal', { worker: () => (worker = new Worker('/worker.js', { type: 'module' })) });
  const gone = new Promise((resolve) => mortal.on('disconnect', ({ code }) => resolve(code)));
  worker.terminate();
  found.gone = await gone;
  const chain = await createDevChain({ worker: 'dedicated' });
  found.chain = await chain.request({ method: 'eth_chainId' });
  chain.close();
  return found;
};

test('clients in workers and on the page\'s thread answer, emit events and notice the end of a worker', { timeout: 120_000 }, async () => {
  const served = await serveChain(300);
  try {
    const [account] = await served.ask('eth_accounts');
    const balance = await served.ask('eth_getBalance', account, '0x1');
    const { notices, gone, chain, ...places } = await inFirefox(scenario, { options: served.options, account });
    const each = [balance, 1];
    assert.deepEqual(places, { default: each, shared: each, dedicated: each, thread: each, mortal: each });
    assert.deepEqual([notices, gone, chain], [[], 4900, '0x21']);
  } finally {
    await served.close();
  }
});
