// ethers with an API key in the path, over HTTP and WebSocket.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ContractFactory, HDNodeWallet, JsonRpcProvider, WebSocketProvider } from 'ethers';
import { WebSocket } from 'ws';
import { MNEMONIC, token } from './chain.mjs';
import { assertRefused, startKeyed, until } from './keys.mjs';

const NETWORK = 33;
let chain;

before(async () => {
  chain = await startKeyed();
});

after(() => chain?.stop());

const overHttp = (url) => new JsonRpcProvider(url, NETWORK, { cacheTimeout: -1, pollingInterval: 50, staticNetwork: true });
const overSocket = (url) => new WebSocketProvider(url, NETWORK, { cacheTimeout: -1, staticNetwork: true });

for (const [name, connect] of [
  ['HTTP', () => overHttp(chain.http)],
  ['WebSocket', () => overSocket(chain.ws)],
]) {
  describe(`ethers with a key over ${name}`, () => {
    let provider, owner, other, contract;

    before(async () => {
      provider = connect();
      const account = (n) => HDNodeWallet.fromPhrase(MNEMONIC, '', `m/44'/60'/0'/0/${n}`).connect(provider);
      [owner, other] = name === 'HTTP' ? [account(0), account(1)] : [account(2), account(3)];
      contract = await new ContractFactory(token.abi, token.bytecode, owner).deploy('Keyed', 1000n);
      await contract.waitForDeployment();
    });

    after(() => provider?.destroy());

    test('transfers, reads and logs', async () => {
      const receipt = await (await contract.transfer(other.address, 7n)).wait();
      assert.equal(receipt.status, 1);
      assert.equal(await contract.balanceOf(other.address), 7n);
      const logs = await contract.queryFilter(contract.filters.Transfer(owner.address), 0, 'latest');
      assert.deepEqual(logs.map((log) => log.args.value), [7n]);
    });

    // ethers polls filters over HTTP, and subscribes over WebSocket.
    test('events and blocks are reported', async () => {
      const blocks = [];
      const events = [];
      await provider.on('block', (number) => blocks.push(number));
      await contract.on('Transfer', (from, to, value) => events.push(value));
      // The filters or subscriptions are installed with the next calls.
      await new Promise((resolve) => setTimeout(resolve, 200));
      const receipt = await (await contract.transfer(other.address, 3n)).wait();
      await until(() => events.includes(3n) && blocks.includes(receipt.blockNumber), `${events}; ${blocks}`);
      await provider.removeAllListeners();
      await contract.removeAllListeners();
    });

    test('a filter gives what is new, once', async () => {
      const filter = await provider.send('eth_newFilter', [{ address: contract.target }]);
      // The first poll also has the logs of the block that was the newest.
      await provider.send('eth_getFilterChanges', [filter]);
      const sent = await contract.transfer(other.address, 1n);
      await sent.wait();
      const [log] = await provider.send('eth_getFilterChanges', [filter]);
      assert.equal(log.transactionHash, sent.hash);
      assert.deepEqual(await provider.send('eth_getFilterChanges', [filter]), []);
      assert.equal(await provider.send('eth_uninstallFilter', [filter]), true);
    });

    test('reverts are decoded', async () => {
      await assert.rejects(contract.connect(other).transfer.staticCall(owner.address, 500n), (error) => {
        assert.equal(error.revert?.name, 'NotEnough');
        assert.equal(error.revert.args.wanted, 500n);
        return true;
      });
      await assert.rejects(contract.transfer.staticCall(`0x${'00'.repeat(20)}`, 1n), { reason: 'no receiver' });
      await assert.rejects(contract.transfer.estimateGas(`0x${'00'.repeat(20)}`, 1n), { reason: 'no receiver' });
    });

    // Over HTTP ethers sends these calls as one batch.
    test('many calls at once', async () => {
      const calls = Array.from({ length: 20 }, (_, n) => provider.getBalance(n % 2 ? owner : other));
      assert.ok((await Promise.all(calls)).every((balance) => balance > 0n));
    });
  });
}

test('a wrong key is refused', async () => {
  await assertRefused(chain.wrong);
  const provider = overHttp(chain.wrong.http);
  await assert.rejects(provider.getBlockNumber(), (error) => {
    assert.equal(error.response?.statusCode, 401);
    assert.equal(JSON.parse(error.response.bodyText).error.code, -32016);
    return true;
  });
  provider.destroy();
});

test('a revoked key is refused, and its WebSockets are closed', async () => {
  const late = chain.create('--name', 'late');
  const provider = overHttp(late.http);
  const socket = new WebSocket(late.ws);
  const lively = new WebSocketProvider(socket, NETWORK, { staticNetwork: true });
  assert.equal((await lively.getNetwork()).chainId, 33n);
  assert.ok((await lively.getBlockNumber()) >= 0 && (await provider.getBlockNumber()) >= 0);
  const closed = new Promise((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)));
  await chain.revoke(late);
  await assert.rejects(provider.getBlockNumber(), (error) => error.response?.statusCode === 401);
  assert.equal(await closed, 1008);
  await assertRefused(late);
  provider.destroy();
});
