// The requests of Blockscout (variant rsk), graph-node, Ponder, the Safe transaction service, OpenZeppelin's relayer and the
// bundlers Skandha and Rundler, in the form of their sources. The tests send them to a development chain and to a light client of
// that chain, which proves the same answers.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createPublicClient, createWalletClient, encodeFunctionData, http, keccak256, toHex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { call, mined, MNEMONIC, startChain, token, until } from './chain.mjs';
import { startProgram } from './program.mjs';

const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const TRANSFER = keccak256(toHex('Transfer(address,address,uint256)'));
const TO = '0x00000000000000000000000000000000000000aa';
/** Code that calls the address in the first word of its data, and goes on if that fails. */
const CALLER = '60006000600060006000600035611388f100';
/** Code that reverts. */
const FAILS = '60006000fd';

/** A tracer with the functions of those of the bundlers: what each call does, and with which results it ends. */
const VALIDATION = `{
  calls: [], opcodes: {}, code: {},
  step: function (log, db) {
    var name = log.op.toString();
    this.opcodes[name] = (this.opcodes[name] || 0) + 1;
    if (name === 'CALL') {
      var to = toAddress(log.stack.peek(1).toString(16));
      this.code[toHex(to)] = [db.getCode(to).length, isPrecompiled(to)];
    }
  },
  fault: function (log, db) { this.calls.push({ type: 'FAULT', depth: log.getDepth(), error: log.getError() }); },
  enter: function (frame) { this.calls.push({ type: frame.getType(), to: toHex(frame.getTo()), method: toHex(frame.getInput()).slice(0, 10) }); },
  exit: function (frame) { this.calls.push({ type: frame.getError() ? 'REVERT' : 'RETURN', data: toHex(frame.getOutput()) }); },
  result: function (ctx, db) { return { calls: this.calls, opcodes: this.opcodes, code: this.code, output: toHex(ctx.output) }; }
}`;

/** The transaction that deploys this code. */
const creation = (code) => ({ data: `0x60${(code.length / 2).toString(16).padStart(2, '0')}80600b6000396000f3${code}` });

/** The chain and its light client, and what the requests are about. */
let chain, light, seen;

/** A request for which a light client has no proof: fees and estimates are its own. */
const own = Symbol('own');

before(async () => {
  chain = await startChain('--log-level', 'warn');
  const options = { chain: local, transport: http(chain.url), pollingInterval: 50, cacheTime: 0 };
  const reader = createPublicClient(options);
  const writer = createWalletClient({ ...options, account: mnemonicToAccount(MNEMONIC) });
  const { contractAddress } = await mined(reader, await writer.deployContract({ ...token, args: ['Indexed', 1_000n] }));
  const deployed = async (code) => (await mined(reader, await writer.sendTransaction(creation(code)))).contractAddress;
  const [caller, fails] = [await deployed(CALLER), await deployed(FAILS)];
  const receipts = [];
  for (const value of [1n, 2n, 3n]) receipts.push(await mined(reader, await writer.writeContract({ ...token, address: contractAddress, functionName: 'transfer', args: [TO, value] })));
  const data = `0x${fails.slice(2).padStart(64, '0')}`;
  receipts.push(await mined(reader, await writer.sendTransaction({ to: caller, data, gas: 100_000n })));
  receipts.push(await mined(reader, await writer.sendTransaction({ to: fails, gas: 100_000n })));
  const head = Number(await reader.getBlockNumber());
  const newest = await reader.getBlock({ blockNumber: BigInt(head) });
  seen = { token: contractAddress, caller, fails, receipts, head, newest, holder: writer.account.address };
  const genesis = await reader.getBlock({ blockNumber: 0n });
  const flags = ['--network', 'regtest', '--upstream', chain.url, '--checkpoint', `0:${genesis.hash}`, '--data-dir', 'none'];
  light = await startProgram(process.env.ROOTLIGHT, ['light', '--http-port', '0', '--ws-port', '0', '--log-level', 'warn', ...flags]);
  await until(async () => (await call(light.url, 'eth_blockNumber')) === toHex(head), 'the light client has all blocks');
});

after(async () => {
  await light?.stop();
  await chain?.stop();
});

/** Sends a batch; returns the members in the order of the requests. */
async function batch(url, requests) {
  const members = requests.map(([method, params], id) => ({ jsonrpc: '2.0', id, method, params }));
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(members) });
  const answers = await response.json();
  return requests.map((_, wanted) => answers.find(({ id }) => id === wanted));
}

const numbers = () => Array.from({ length: seen.head }, (_, index) => toHex(index + 1));
const balanceOf = (who) => encodeFunctionData({ abi: token.abi, functionName: 'balanceOf', args: [who] });

/** Lists of requests by tool; each list is one batch. */
const LISTS = {
  // apps/ethereum_jsonrpc: block fetchers, internal transactions (trace_block), balances, codes, tokens, raw traces.
  'Blockscout': () => [
    [['eth_blockNumber', []], ['eth_getBlockByNumber', ['latest', false]], ['net_version', []]],
    numbers().map((number) => ['eth_getBlockByNumber', [number, true]]),
    [['eth_getBlockByHash', [seen.newest.hash, true]], ['eth_getBlockReceipts', [toHex(seen.head)]]],
    seen.receipts.map(({ transactionHash }) => ['eth_getTransactionReceipt', [transactionHash]]),
    numbers().map((number) => ['trace_block', [number]]),
    seen.receipts.map(({ transactionHash }) => ['debug_traceTransaction', [transactionHash, { tracer: 'callTracer', timeout: '5s' }]]),
    numbers().map((number) => ['debug_traceBlockByNumber', [number, { tracer: 'callTracer' }]]),
    numbers().map((number) => ['eth_getBalance', [seen.holder, number]]),
    [['eth_getCode', [seen.token, 'latest']], ['eth_getStorageAt', [seen.token, '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc', 'latest']]],
    ['0x06fdde03', balanceOf(TO), balanceOf(seen.holder)].map((data) => ['eth_call', [{ to: seen.token, data }, 'latest']]),
    [['eth_getUncleByBlockHashAndIndex', [seen.newest.hash, '0x0']], ['eth_getTransactionByHash', [seen.receipts[0].transactionHash]]],
    [['eth_getLogs', [{ fromBlock: '0x1', toBlock: toHex(seen.head), topics: [TRANSFER] }]]],
  ],
  // chain/ethereum/src/ethereum_adapter.rs: everything at a block's hash (EIP-1898).
  'graph-node': () => {
    const at = { blockHash: seen.newest.hash };
    return [
      [['net_version', []]],
      [['eth_getBlockByNumber', ['0x0', false]]],
      [['eth_getBlockByNumber', ['latest', false]]],
      [['eth_getBlockReceipts', [at]]],
      [['eth_getBlockByHash', [seen.newest.hash, true]]],
      [['eth_getLogs', [{ fromBlock: '0x1', toBlock: toHex(seen.head), address: [seen.token], topics: [[TRANSFER]] }]]],
      [['eth_getLogs', [{ blockHash: seen.receipts[0].blockHash, address: [seen.token], topics: [[TRANSFER]] }]]],
      [['eth_call', [{ to: seen.token, data: balanceOf(TO), gas: '0x2faf080' }, at]]],
      [['eth_call', [{ to: seen.fails, data: '0x', gas: '0x2faf080' }, at]]],
      [['eth_getBalance', [seen.holder, at]], ['eth_getCode', [seen.token, at]]],
      [['trace_filter', [{ fromBlock: '0x1', toBlock: toHex(seen.head), toAddress: [seen.token] }]]],
      seen.receipts.map(({ transactionHash }) => ['eth_getTransactionReceipt', [transactionHash]]),
    ];
  },
  // src/rpc/actions.ts, and the reads of indexing functions.
  'Ponder': () => [
    [['eth_chainId', []], ['eth_getBlockByNumber', ['latest', true]], ['eth_getBlockByNumber', ['finalized', true]]],
    [['eth_getLogs', [{ fromBlock: '0x1', toBlock: toHex(seen.head), address: seen.token, topics: [TRANSFER] }]]],
    [['eth_getLogs', [{ blockHash: seen.newest.hash }]]],
    [['eth_getBlockByHash', [seen.newest.hash, true]], ['eth_getBlockReceipts', [seen.newest.hash]]],
    [['debug_traceBlockByNumber', [toHex(seen.head), { tracer: 'callTracer' }]], ['debug_traceBlockByHash', [seen.newest.hash, { tracer: 'callTracer' }]]],
    [['eth_call', [{ to: seen.token, data: balanceOf(TO) }, toHex(seen.head - 2)]], ['eth_getTransactionReceipt', [seen.receipts[0].transactionHash]]],
  ],
  // safe-eth-py, and the indexers of the service, with traces and with events.
  'Safe transaction service': () => [
    [['eth_chainId', []], ['eth_blockNumber', []]],
    [['eth_gasPrice', [], own], ['web3_clientVersion', [], own], ['eth_estimateGas', [{ from: seen.holder, to: seen.token, data: balanceOf(TO) }], own]],
    numbers().map((number) => ['eth_getBlockByNumber', [number, false]]),
    numbers().map((number) => ['trace_block', [number]]),
    [['trace_filter', [{ fromBlock: '0x1', toBlock: toHex(seen.head), toAddress: [seen.caller] }]]],
    seen.receipts.map(({ transactionHash }) => ['trace_transaction', [transactionHash]]),
    seen.receipts.map(({ transactionHash }) => ['eth_getTransactionByHash', [transactionHash]]),
    [['eth_getLogs', [{ fromBlock: '0x1', toBlock: toHex(seen.head), topics: [[TRANSFER], null, `0x${TO.slice(2).padStart(64, '0')}`] }]]],
    [['eth_getTransactionCount', [seen.holder, 'latest']], ['eth_getBalance', [seen.holder, 'latest']], ['eth_getCode', [seen.token, 'latest']]],
    [['eth_call', [{ to: seen.token, data: balanceOf(TO) }, 'latest']]],
  ],
  // src/services/provider/evm, by alloy's provider; a network without the feature `eip1559` asks for no fees of EIP-1559.
  "OpenZeppelin's relayer": () => [
    [['eth_chainId', []]],
    [['eth_blockNumber', []]],
    [['eth_gasPrice', [], own]],
    [['eth_getTransactionCount', [seen.holder, 'latest']], ['eth_getBalance', [seen.holder, 'latest']]],
    [['eth_getBlockByNumber', ['latest', false]]],
    [['eth_estimateGas', [{ from: seen.holder, to: seen.token, gas: '0x186a0', gasPrice: '0x0', value: '0x0', input: balanceOf(TO), nonce: '0x9', chainId: '0x21' }], own]],
    seen.receipts.map(({ transactionHash }) => ['eth_getTransactionReceipt', [transactionHash]]),
    [['debug_traceTransaction', [seen.receipts[4].transactionHash, { tracer: 'callTracer' }]]],
    [['eth_call', [{ from: seen.holder, to: seen.fails, input: '0x' }, toHex(seen.head)]]],
  ],
  // Validations of operations: packages/executor/src/services of Skandha, crates/sim of Rundler. The code of the entry point is
  // replaced, and a tracer in JavaScript looks on.
  'Skandha and Rundler': () => {
    const stateOverrides = { [seen.token]: { code: `0x${CALLER}` } };
    const operation = { to: seen.token, data: `0x${seen.fails.slice(2).padStart(64, '0')}` };
    const from = `0x${'0'.repeat(40)}`;
    return [
      [['debug_traceCall', [{ ...operation, from, gas: '0x186a0' }, 'latest', { stateOverrides, tracer: VALIDATION }]]],
      // ethers 5 writes its numbers as objects; the gas has another name here.
      [['debug_traceCall', [{ ...operation, from, gasLimit: { type: 'BigNumber', hex: '0x0186a0' } }, 'latest', { stateOverrides, tracer: 'prestateTracer' }]]],
      [['debug_traceCall', [operation, { blockHash: seen.newest.hash }, { stateOverrides, tracer: VALIDATION, timeout: '15s' }]]],
      [['eth_call', [operation, 'latest', stateOverrides]]],
      [['eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', address: seen.token, topics: [TRANSFER] }]]],
      [['debug_traceTransaction', [seen.receipts[4].transactionHash, { tracer: 'callTracer', tracerConfig: { onlyTopCall: true } }]]],
    ];
  },
};

for (const [tool, lists] of Object.entries(LISTS)) {
  test(`${tool}: a chain answers each request, and a light client gives the same`, async () => {
    for (const list of lists()) {
      const [given, proven] = [await batch(chain.url, list), await batch(light.url, list)];
      for (const [index, [method, params, kind]] of list.entries()) {
        const what = `${method} ${JSON.stringify(params)}`;
        const failing = params[0]?.to === seen.fails;
        assert.ok(failing ? given[index].error : 'result' in given[index], `${what}: ${JSON.stringify(given[index])}`);
        if (kind !== own) assert.deepEqual(proven[index], given[index], what);
      }
    }
  });
}

// What the parsers of the tools read: without one of these members they stop.
describe('the members that the tools read', () => {
  test('bundlers: the replaced code, its inner calls and how they end', async () => {
    const stateOverrides = { [seen.token]: { code: `0x${CALLER}` } };
    const operation = { to: seen.token, data: `0x${seen.fails.slice(2).padStart(64, '0')}` };
    const { calls, opcodes, code, output } = await call(chain.url, 'debug_traceCall', operation, 'latest', { stateOverrides, tracer: VALIDATION });
    assert.deepEqual(calls.map(({ type }) => type), ['CALL', 'FAULT', 'REVERT']);
    assert.deepEqual([calls[0].to, opcodes.CALL, opcodes.REVERT, output], [seen.fails, 1, 1, '0x']);
    assert.deepEqual(code[seen.fails], [FAILS.length / 2, false]);
  });

  test('Blockscout: traces of a block, its transactions in order', async () => {
    let traces = 0;
    for (const number of numbers()) {
      const { transactions } = await call(chain.url, 'eth_getBlockByNumber', number, false);
      const block = await call(chain.url, 'trace_block', number);
      for (const { action, result, error, traceAddress, transactionHash, transactionPosition, type, subtraces, blockNumber } of block) {
        assert.equal(transactions[transactionPosition], transactionHash);
        assert.deepEqual([blockNumber, typeof subtraces, Array.isArray(traceAddress)], [Number(number), 'number', true]);
        assert.ok(['call', 'create', 'suicide', 'reward'].includes(type), type);
        assert.ok(type !== 'call' || (action.callType && action.from && action.to && action.gas && action.value && action.input), JSON.stringify(action));
        assert.ok(error || type === 'reward' || result?.gasUsed, JSON.stringify(result));
        traces++;
      }
    }
    assert.ok(traces > 2 * seen.head);
  });

  test('Ponder: one callTracer frame for each transaction, with its hash', async () => {
    for (const { blockHash, transactionHash, status } of seen.receipts) {
      const traces = await call(chain.url, 'debug_traceBlockByHash', blockHash, { tracer: 'callTracer' });
      const { transactions } = await call(chain.url, 'eth_getBlockByHash', blockHash, false);
      assert.deepEqual(traces.map(({ txHash }) => txHash), transactions);
      const { result } = traces.find(({ txHash }) => txHash === transactionHash);
      for (const name of ['type', 'from', 'to', 'gas', 'gasUsed', 'input', 'value']) assert.ok(name in result, name);
      assert.equal('error' in result, status === 'reverted');
    }
    const inner = await call(chain.url, 'debug_traceTransaction', seen.receipts[3].transactionHash, { tracer: 'callTracer' });
    assert.deepEqual(inner.calls.map(({ to, error }) => [to, error]), [[seen.fails, 'execution reverted']]);
  });

  test('graph-node and Ponder: receipts of a block in order, with logs of that block', async () => {
    for (const { blockHash } of seen.receipts) {
      const receipts = await call(chain.url, 'eth_getBlockReceipts', { blockHash });
      const block = await call(chain.url, 'eth_getBlockByHash', blockHash, false);
      assert.deepEqual(receipts.map((receipt) => receipt.transactionHash), block.transactions);
      const logs = receipts.flatMap((receipt) => receipt.logs);
      const found = await call(chain.url, 'eth_getLogs', { blockHash });
      assert.deepEqual(logs, found.map(({ removed, ...log }) => log));
      for (const receipt of receipts) assert.ok(receipt.gasUsed && receipt.status && receipt.blockHash === blockHash);
    }
  });
});
