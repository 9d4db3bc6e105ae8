// Errors that programs parse, each read by the library that parses it: the limits of log queries, of a key, and methods that
// Rootstock cannot have.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { getLogsRetryHelper } from '@ponder/utils';
import { JsonRpcProvider } from 'ethers';
import { MethodNotFoundRpcError, createPublicClient, custom, http } from 'viem';
import { createDevChain } from '../../pkg/dev.js';
import { createProvider } from '../../pkg/index.js';
import { transportTo } from '../../pkg/test/lib/chain-transport.mjs';
import { startChain } from './chain.mjs';
import { graphNodeNarrows } from './matchers.mjs';

/** A contract that writes 4,000 logs when it is called. */
const EMITTER = '0x000000000000000000000000000000000000e177';
const CODE = '0x610fa05b60006000a06001900380600357';
const LOGS = 12_000;
/** More blocks than a query with any number of logs may cover. */
const BLOCKS = '0x834';

/** The program's chain, that of the package, and a light client of the package, by name. */
const providers = {};
let server, running;

/** Three blocks of logs, and then empty ones. */
async function fill(request) {
  const [from] = await request('eth_accounts', []);
  await request('anvil_setCode', [EMITTER, CODE]);
  for (let count = 0; count < 3; count++) {
    const hash = await request('eth_sendTransaction', [{ from, to: EMITTER, gas: '0x5b8d80' }]);
    const { status, logs } = await request('eth_getTransactionReceipt', [hash]);
    assert.deepEqual([status, logs.length], ['0x1', LOGS / 3]);
  }
  await request('anvil_mine', [BLOCKS]);
}

before(async () => {
  // The package's chain is in this process: no connection keeps it running.
  running = setInterval(() => {}, 1_000);
  server = await startChain('--log-level', 'warn');
  const client = createPublicClient({ transport: http(server.url, { retryCount: 0, timeout: 60_000 }) });
  providers['program'] = { request: (method, params) => client.request({ method, params }) };
  await fill(providers.program.request);
  const chain = await createDevChain();
  providers['package'] = { request: (method, params) => chain.request({ method, params }), close: () => chain.close() };
  await fill(providers.package.request);
  const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const checkpoint = { number: 0, hash };
  const light = await createProvider({ network: 'regtest', checkpoint, upstreams: transportTo(chain), pollSeconds: 0.1, storage: null });
  providers['light client'] = { request: (method, params) => light.request({ method, params }), close: () => light.close() };
});

after(() => {
  providers['light client']?.close();
  providers['package']?.close();
  server?.stop();
  clearInterval(running);
});

/** The error of a request as viem gives it to its callers. */
const refusal = async (provider, method, params) => {
  const client = createPublicClient({ transport: custom({ request: ({ method, params }) => provider.request(method, params) }, { retryCount: 0 }) });
  return client.request({ method, params }).then(() => assert.fail(`${method} is answered`), (error) => error);
};

for (const name of ['program', 'package', 'light client']) {
  test(`Ponder finds all logs after the error of the limit: ${name}`, async () => {
    const provider = providers[name];
    const head = await provider.request('eth_blockNumber', []);
    const wanted = { address: EMITTER, fromBlock: '0x0', toBlock: head };
    const error = await refusal(provider, 'eth_getLogs', [wanted]);
    const { shouldRetry, isSuggestedRange, ranges } = getLogsRetryHelper({ error, params: [wanted] });
    assert.ok(shouldRetry && isSuggestedRange, error.message);
    assert.deepEqual([ranges[0].fromBlock, ranges.at(-1).toBlock], ['0x0', head]);
    let found = 0;
    for (const range of ranges) found += (await provider.request('eth_getLogs', [{ ...wanted, ...range }])).length;
    assert.equal(found, LOGS);
  });

  test(`graph-node asks for less after the error of the limit: ${name}`, async () => {
    const error = await refusal(providers[name], 'eth_getLogs', [{ fromBlock: '0x0' }]);
    assert.ok(graphNodeNarrows(error), error.message);
  });

  test(`a method that Rootstock cannot have says what to do: ${name}`, async () => {
    for (const [method, params] of [['eth_feeHistory', ['0x1', 'latest', []]], ['eth_maxPriorityFeePerGas', []]]) {
      const error = await refusal(providers[name], method, params);
      assert.ok(error.walk((cause) => cause instanceof MethodNotFoundRpcError), error.message);
      assert.match(error.details, /no EIP-1559 fees.*--legacy/);
    }
  });
}

// ethers reads the text: other texts are an error of a kind that it does not know.
test('ethers knows that the method is not there', async () => {
  const provider = new JsonRpcProvider(server.url, undefined, { staticNetwork: true });
  await assert.rejects(provider.send('eth_blobBaseFee', []), ({ code }) => code === 'UNSUPPORTED_OPERATION');
  provider.destroy();
});
