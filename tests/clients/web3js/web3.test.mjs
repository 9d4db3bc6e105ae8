// web3.js with an API key in the path, over HTTP and WebSocket.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Web3, WebSocketProvider } from 'web3';
import { token } from '../chain.mjs';
import { assertRefused, startKeyed, until } from '../keys.mjs';

// The keys of the first two accounts of the mnemonic "test test ... junk".
const SECRETS = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
];
const NOWHERE = `0x${'00'.repeat(20)}`;
let chain;

before(async () => {
  chain = await startKeyed();
});

after(() => chain?.stop());

const overHttp = (url) => new Web3(url);
const overSocket = (url) => new Web3(new WebSocketProvider(url, {}, { autoReconnect: false }));

for (const [name, connect, index] of [
  ['HTTP', () => overHttp(chain.http), 0],
  ['WebSocket', () => overSocket(chain.ws), 1],
]) {
  describe(`web3.js with a key over ${name}`, () => {
    const to = '0x00000000000000000000000000000000000000aa';
    let web3, from, contract;

    const transfer = async (value) => {
      const { address } = contract.options;
      const gasPrice = await web3.eth.getGasPrice();
      const data = contract.methods.transfer(to, value).encodeABI();
      const gas = await web3.eth.estimateGas({ from, to: address, data });
      const signed = await web3.eth.accounts.signTransaction({ from, to: address, data, gas, gasPrice }, SECRETS[index]);
      return web3.eth.sendSignedTransaction(signed.rawTransaction);
    };

    before(async () => {
      web3 = connect();
      const account = web3.eth.accounts.wallet.add(SECRETS[index]).get(0);
      from = account.address;
      web3.eth.transactionPollingInterval = 20;
      const gasPrice = await web3.eth.getGasPrice();
      const deployment = new web3.eth.Contract(token.abi).deploy({ data: token.bytecode, arguments: ['Keyed', 1000] });
      contract = await deployment.send({ from, gasPrice, gas: 3_000_000 });
    });

    after(() => name === 'WebSocket' && web3?.provider.disconnect());

    test('transfers, reads and logs', async () => {
      const receipt = await transfer(7);
      assert.equal(receipt.status, 1n);
      assert.equal(await contract.methods.balanceOf(to).call(), 7n);
      const logs = await contract.getPastEvents('Transfer', { filter: { to }, fromBlock: 0 });
      assert.deepEqual(logs.map((log) => log.returnValues.value), [7n]);
    });

    test('a filter gives what is new, once', async () => {
      const filter = await web3.eth.createNewBlockFilter();
      const receipt = await transfer(1);
      const id = web3.utils.toHex(filter);
      assert.deepEqual(await web3.eth.getFilterChanges(id), [receipt.blockHash]);
      assert.deepEqual(await web3.eth.getFilterChanges(id), []);
      assert.equal(await web3.eth.uninstallFilter(id), true);
    });

    test('reverts are decoded', async () => {
      await assert.rejects(contract.methods.transfer(to, 5000).call({ from }), (error) => {
        assert.equal(error.cause?.errorName, 'NotEnough');
        assert.equal(error.cause.errorArgs.wanted, 5000n);
        return true;
      });
      await assert.rejects(contract.methods.transfer(NOWHERE, 1).call({ from }), (error) => {
        assert.match(`${error.cause?.message} ${JSON.stringify(error.cause?.errorArgs)}`, /no receiver/);
        return true;
      });
    });

    test('a batch', async () => {
      const batch = new web3.BatchRequest();
      const params = [from, 'latest'];
      const calls = Array.from({ length: 20 }, (_, n) => ({ jsonrpc: '2.0', id: n + 1, method: 'eth_getBalance', params }));
      const answers = calls.map((call) => batch.add(call));
      await batch.execute();
      for (const answer of answers) assert.ok(BigInt(await answer) > 0n);
    });

    test('subscriptions', { skip: name === 'HTTP' && 'web3.js subscribes over WebSocket only' }, async () => {
      const heads = [];
      const values = [];
      const blocks = await web3.eth.subscribe('newBlockHeaders');
      blocks.on('data', (head) => heads.push(head.number));
      const events = contract.events.Transfer();
      events.on('data', (log) => values.push(log.returnValues.value));
      await new Promise((resolve) => events.on('connected', resolve));
      const receipt = await transfer(3);
      await until(() => heads.includes(receipt.blockNumber) && values.includes(3n), `${heads}; ${values}`);
      await blocks.unsubscribe();
    });
  });
}

test('a wrong key is refused', async () => {
  await assertRefused(chain.wrong);
  await assert.rejects(overHttp(chain.wrong.http).eth.getBlockNumber(), (error) => {
    assert.equal(error.statusCode, 401);
    return true;
  });
});

test('a revoked key is refused, and its WebSockets are closed', async () => {
  const late = chain.create('--name', 'late');
  const [polling, lively] = [overHttp(late.http), overSocket(late.ws)];
  assert.equal(await polling.eth.getChainId(), 33n);
  assert.equal(await lively.eth.getChainId(), 33n);
  const closed = new Promise((resolve) => lively.provider.on('disconnect', ({ code }) => resolve(code)));
  await chain.revoke(late);
  await assert.rejects(polling.eth.getChainId(), { statusCode: 401 });
  assert.equal(await closed, 1008);
  await assertRefused(late);
});
