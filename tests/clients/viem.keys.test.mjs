// viem with an API key in the path, over HTTP and WebSocket.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ContractFunctionRevertedError, createPublicClient, createWalletClient, http, webSocket } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { mined, MNEMONIC, token } from './chain.mjs';
import { assertRefused, startKeyed, until } from './keys.mjs';

const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
let chain;

before(async () => {
  chain = await startKeyed();
});

after(() => chain?.stop());

const client = (transport) => createPublicClient({ chain: local, transport, pollingInterval: 50, cacheTime: 0 });
const overHttp = (url, batch = true) => http(url, { batch, retryCount: 0 });
const overSocket = (url) => webSocket(url, { retryCount: 0, reconnect: false, keepAlive: false });

for (const [name, connect, index] of [
  ['HTTP', () => overHttp(chain.http), 0],
  ['WebSocket', () => overSocket(chain.ws), 1],
]) {
  describe(`viem with a key over ${name}`, () => {
    const account = mnemonicToAccount(MNEMONIC, { addressIndex: index });
    const to = '0x00000000000000000000000000000000000000aa';
    let reader, writer, address;

    const transfer = (value) => writer.writeContract({ ...token, address, functionName: 'transfer', args: [to, value] });

    before(async () => {
      const transport = connect();
      reader = client(transport);
      writer = createWalletClient({ chain: local, transport, account });
      const hash = await writer.deployContract({ ...token, args: ['Keyed', 50n] });
      address = (await mined(reader, hash)).contractAddress;
    });

    after(async () => {
      if (name === 'WebSocket') {
        (await reader.transport.getRpcClient()).close();
        (await writer.transport.getRpcClient()).close();
      }
    });

    test('transfers, reads and logs', async () => {
      const receipt = await mined(reader, await transfer(9n));
      assert.equal(receipt.status, 'success');
      assert.equal(await reader.readContract({ ...token, address, functionName: 'balanceOf', args: [to] }), 9n);
      const logs = await reader.getContractEvents({ ...token, address, eventName: 'Transfer', fromBlock: 0n });
      assert.deepEqual(logs.map((log) => log.args.value), [50n, 9n]);
    });

    // viem polls over HTTP, and subscribes over WebSocket.
    test('events and blocks are reported', async () => {
      const values = [];
      const heights = [];
      const failed = [];
      const onError = (error) => failed.push(error);
      const onLogs = (logs) => values.push(...logs.map((log) => log.args.value));
      const ended = [
        reader.watchContractEvent({ ...token, address, eventName: 'Transfer', onLogs, onError }),
        reader.watchBlocks({ onBlock: ({ number }) => heights.push(number), onError }),
      ];
      await new Promise((resolve) => setTimeout(resolve, 200));
      const { blockNumber } = await mined(reader, await transfer(2n));
      await until(() => values.includes(2n) && heights.includes(blockNumber), `${values}; ${heights}`);
      ended.forEach((end) => end());
      assert.deepEqual(failed, []);
    });

    test('a filter gives what is new, once', async () => {
      const filter = await reader.createContractEventFilter({ ...token, address, eventName: 'Transfer' });
      // The first poll also has the logs of the block that was the newest.
      await reader.getFilterChanges({ filter });
      await mined(reader, await transfer(1n));
      const logs = await reader.getFilterChanges({ filter });
      assert.deepEqual(logs.map((log) => log.args.value), [1n]);
      assert.deepEqual(await reader.getFilterChanges({ filter }), []);
      assert.equal(await reader.uninstallFilter({ filter }), true);
    });

    test('reverts are decoded', async () => {
      const call = { ...token, address, functionName: 'transfer', args: [account.address, 51n], account };
      await assert.rejects(reader.simulateContract(call), (error) => {
        const revert = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
        assert.equal(revert?.data?.errorName, 'NotEnough');
        assert.equal(revert.data.args[2], 51n);
        return true;
      });
      const nowhere = { ...call, args: [`0x${'00'.repeat(20)}`, 1n] };
      await assert.rejects(reader.estimateContractGas(nowhere), /no receiver/);
    });

    // Over HTTP viem sends these calls as one batch.
    test('many calls at once', async () => {
      const calls = Array.from({ length: 20 }, () => reader.getBalance({ address: account.address }));
      assert.ok((await Promise.all(calls)).every((balance) => balance > 0n));
    });
  });
}

// viem gives the error of the body, and not the status.
const refused = (error) => Boolean(error.walk((cause) => cause.code === -32016));

test('a wrong key is refused', async () => {
  await assertRefused(chain.wrong);
  await assert.rejects(client(overHttp(chain.wrong.http, false)).getBlockNumber(), refused);
  await assert.rejects(client(overSocket(chain.wrong.ws)).getBlockNumber());
});

test('a revoked key is refused, and its WebSockets are closed', async () => {
  const late = chain.create('--name', 'late');
  const [polling, lively] = [client(overHttp(late.http, false)), client(overSocket(late.ws))];
  assert.equal(await polling.getChainId(), 33);
  assert.equal(await lively.getChainId(), 33);
  const { socket } = await lively.transport.getRpcClient();
  const closed = new Promise((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)));
  await chain.revoke(late);
  await assert.rejects(polling.getChainId(), refused);
  assert.equal(await closed, 1008);
  await assertRefused(late);
});
