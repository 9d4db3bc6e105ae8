// A page whose only upstream is a light client that lives on peers: everything is proven again in the page.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { inPage } from '../../pkg/test/lib/in-page.mjs';
import { call, startProgram } from './lib/site.mjs';

/** A port of this machine that was free a moment ago. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Asks `questions`, lists of method and parameters, of the package's provider in a page; resolves to their answers or errors. */
async function asked(url, questions) {
  return inPage((run) => run(async (upstream, list) => {
    const { createProvider } = await import('/index.js');
    const provider = await createProvider({ network: 'regtest', checkpoint: null, upstreams: [upstream], maxAge: 0 });
    const answers = [];
    for (const [method, params] of list) {
      answers.push(await provider.request({ method, params }).then((result) => ({ result }), ({ code, message }) => ({ code, message })));
    }
    await provider.close?.();
    return answers;
  }, url, questions));
}

test('a page behind a light client without any JSON-RPC provider gets proven state, calls, blocks, receipts and logs', async (t) => {
  const port = await freePort();
  const dev = await startProgram('dev', '--genesis', 'regtest', '--p2p-port', String(port));
  t.after(dev.stop);
  const [account, other] = await call(dev.url, 'eth_accounts');
  // Stores 7 in cell 0 and returns it when called.
  const data = '0x6007600055600b8060106000396000f360005460005260206000f300';
  const creation = await call(dev.url, 'eth_sendTransaction', { from: account, data, gas: '0x30000' });
  const { contractAddress: contract } = await call(dev.url, 'eth_getTransactionReceipt', creation);
  await call(dev.url, 'eth_sendTransaction', { from: account, to: other, value: '0x5', gas: '0x5208' });
  const head = await call(dev.url, 'eth_blockNumber');
  const block = await call(dev.url, 'eth_getBlockByNumber', '0x1', false);
  const light = await startProgram('light', '--network', 'regtest', '--checkpoint', 'none', '--max-age', '0', '--bootnode', `127.0.0.1:${port}`);
  t.after(light.stop);
  while (await call(light.url, 'eth_blockNumber').catch(() => undefined) !== head) await new Promise((resolve) => setTimeout(resolve, 200));

  const questions = [
    ['eth_blockNumber', []],
    ['eth_getBalance', [account, 'latest']],
    ['eth_getBalance', ['0x00000000000000000000000000000000000000ee', 'latest']],
    ['eth_getTransactionCount', [account, 'latest']],
    ['eth_getCode', [contract, 'latest']],
    ['eth_getStorageAt', [contract, '0x0', 'latest']],
    ['eth_call', [{ to: contract }, 'latest']],
    ['eth_estimateGas', [{ from: other, to: contract }]],
    ['eth_getBlockByNumber', [head, true]],
    ['eth_getProof', [contract, ['0x0', '0x1'], 'latest']],
    ['eth_getLogs', [{ fromBlock: '0x1', toBlock: head, address: '0x00000000000000000000000000000000000000ee' }]],
    ['eth_getLogs', [{ fromBlock: '0x1', toBlock: head }]],
    ['eth_getTransactionReceipt', [creation]],
    ['eth_getTransactionByHash', [creation]],
    ['eth_getBlockReceipts', [head]],
    ['rsk_getRawTransactionReceiptByHash', [creation]],
    ['rsk_getTransactionReceiptNodesByHash', [block.hash, creation]],
    ['rsk_getRawBlockHeaderByHash', [block.hash]],
    ['rsk_getStorageBytesAt', [contract, '0x0', 'latest']],
    ['eth_getBlockByHash', [block.hash, false]],
    ['eth_getBlockTransactionCountByNumber', [head]],
    ['eth_getTransactionByBlockHashAndIndex', [block.hash, '0x0']],
    ['eth_getTransactionByBlockNumberAndIndex', ['0x1', '0x1']],
    ['eth_getUncleCountByBlockNumber', [head]],
    ['eth_getUncleByBlockNumberAndIndex', [head, '0x0']],
    ['eth_gasPrice', []],
    ['eth_chainId', []],
    ['eth_getTransactionReceipt', [`0x${'00'.repeat(32)}`]],
  ];
  const answers = await asked(light.url, questions);
  for (const [index, [method, params]] of questions.slice(0, -1).entries()) {
    assert.deepEqual(answers[index].result, await call(dev.url, method, ...params), `${method} ${JSON.stringify(answers[index])}`);
  }
  assert.match(answers.at(-1).message, /the newest 64 blocks do not have this one; ask about its block, or add a JSON-RPC upstream/, JSON.stringify(answers.at(-1)));
});
