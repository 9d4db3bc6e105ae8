// Makes tests/vectors/geth.json: what go-ethereum answers to requests for which anvil is no model, after the transactions of
// tests/vectors/anvil.json. The test `geth_recorded` of the core compares them.
//
//   go install github.com/ethereum/go-ethereum/cmd/geth@v1.16.5
//   GETH=~/go/bin/geth node tests/clients/geth.mjs
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { privateKeyToAccount } from 'viem/accounts';
import { startGeth } from '../../bench/compare/geth.mjs';

const vectors = new URL('../vectors/', import.meta.url);
const anvil = JSON.parse(readFileSync(new URL('anvil.json', vectors), 'utf8'));
const CHAIN_ID = 33;
const KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
/** A price above geth's base fee, in wei. */
const GAS_PRICE = '0x77359400';
const word = (number) => `0x${number.toString(16).padStart(64, '0')}`;

/** The contracts of the recording. */
const [STORE, CALLER, REVERTER, ENDING, CREATOR] = anvil.setup.filter(({ method }) => method === 'anvil_setCode').map(({ params }) => params[0]);
const account = privateKeyToAccount(KEY);
const ALICE = account.address.toLowerCase();
const transactions = anvil.transactions.map((transaction) => ({ ...transaction, gasPrice: GAS_PRICE }));
/** This one has the next block for itself, and leaves a word in storage. */
const later = transactions[0];
/** This one is left waiting. */
const waiting = { ...transactions[3], value: '0x1' };

const alloc = { [ALICE]: { balance: '0x21e19e0c9bab2400000' } };
for (const { method, params: [address, value] } of anvil.setup) {
  if (method === 'anvil_setCode') alloc[address] = { balance: '0x0', ...alloc[address], code: value };
  if (method === 'anvil_setBalance') alloc[address] = { ...alloc[address], balance: value };
}

const sign = ({ to, data, value, gas, gasPrice }, nonce) =>
  account.signTransaction({ type: 'legacy', chainId: CHAIN_ID, nonce, to, data, value: BigInt(value), gas: BigInt(gas), gasPrice: BigInt(gasPrice) });

const TRACERS = [
  ['callTracer', { withLog: true }],
  ['flatCallTracer', {}],
  ['flatCallTracer', { convertParityErrors: true }],
  ['prestateTracer', {}],
  ['prestateTracer', { diffMode: true }],
  ['4byteTracer', {}],
  ['erc7562Tracer', { withLog: true }],
  ['muxTracer', { 'callTracer': { onlyTopCall: true }, '4byteTracer': {}, 'prestateTracer': { diffMode: true } }],
  ['noopTracer', {}],
];

/** Simulated calls: a block of them, and one that begins with another state. */
const simulation = () => {
  const call = (to, data = '0x') => ({ from: ALICE, to, data, gas: '0x30d40' });
  const overridden = { stateOverrides: { [REVERTER]: { balance: '0x64' } }, calls: [{ from: REVERTER, to: STORE, value: '0x5', gas: '0x30d40' }] };
  return { blockStateCalls: [{ calls: [call(STORE, word(9)), call(CALLER), call(REVERTER), call(CREATOR)] }, overridden] };
};

function requests(hashes) {
  const call = (to, data = '0x') => ({ from: ALICE, to, data, gas: '0x30d40', gasPrice: '0x0' });
  const list = [];
  for (const [tracer, tracerConfig] of TRACERS) {
    const options = { tracer, tracerConfig };
    // A creation, one that reverts, an instruction that does not exist, and too little gas.
    for (const data of ['0x600160005360016000f3', '0x602a5f5260205ffd', '0xfe']) list.push(['debug_traceCall', [call(undefined, data), '0x1', options]]);
    list.push(['debug_traceCall', [{ ...call(STORE, word(3)), gas: '0x5300' }, '0x1', options]]);
    for (const to of [CALLER, REVERTER, CREATOR, ENDING]) list.push(['debug_traceCall', [call(to), '0x1', options]]);
    list.push(['debug_traceBlockByNumber', ['0x2', options]]);
    for (const hash of [hashes[1], hashes[4], hashes[5]]) list.push(['debug_traceTransaction', [hash, options]]);
  }
  const steps = { tracer: 'structLogger', enableMemory: true, enableReturnData: true };
  list.push(['debug_traceCall', [call(CALLER), '0x1', steps]], ['debug_traceTransaction', [hashes[2], steps]]);
  for (const start of ['0x', `0x${'f'.repeat(64)}`]) list.push(['debug_storageRangeAt', ['0x4', 0, STORE, start, 10]]);
  list.push(['debug_executionWitness', ['0x2']]);
  for (const method of ['txpool_content', 'txpool_inspect', 'txpool_status']) list.push([method, []]);
  list.push(['txpool_contentFrom', [ALICE]], ['txpool_contentFrom', [STORE]]);
  for (const more of [{}, { traceTransfers: true }, { returnFullTransactions: true }]) list.push(['eth_simulateV1', [{ ...simulation(), ...more }, '0x2']]);
  list.push(['eth_createAccessList', [{ from: ALICE, to: CALLER, data: '0x', gas: '0x30d40' }, '0x2']], ['eth_getHeaderByNumber', ['0x2']], ['eth_getBlockReceipts', ['0x2']]);
  list.push(['debug_getRawTransaction', [hashes[0]]], ['eth_getRawTransactionByHash', [hashes[1]]], ['eth_getRawTransactionByBlockNumberAndIndex', ['0x2', '0x1']]);
  for (const method of ['debug_getRawHeader', 'debug_getRawBlock', 'debug_getRawReceipts']) list.push([method, ['0x2']]);
  list.push(['eth_fillTransaction', [{ ...call(STORE), gasPrice: GAS_PRICE, nonce: '0x9', value: '0x1' }]]);
  return list;
}

const client = execFileSync(process.env.GETH, ['version'], { stdio: ['ignore', 'pipe', 'ignore'] }).toString().match(/Version: ([\d.]+)/)[1];
const node = await startGeth(process.env.GETH, 18645, CHAIN_ID, alloc);
try {
  const send = async (transaction, nonce) => node.connection.call('eth_sendRawTransaction', await sign(transaction, nonce));
  await node.mine(1);
  const hashes = [];
  for (const [nonce, transaction] of transactions.entries()) hashes.push(await send(transaction, nonce));
  await node.mine();
  await send(later, transactions.length);
  await node.mine();
  await node.mine(1);
  await send(waiting, transactions.length + 1);
  const recorded = [];
  for (const [method, params] of requests(hashes)) {
    // geth's tracer of instructions has no name.
    const asked = params.map((param) => (param.tracer === 'structLogger' ? { ...param, tracer: undefined } : param));
    recorded.push({ method, params, result: await node.connection.call(method, ...asked) });
  }
  const lines = (list) => `[\n${list.map((item) => JSON.stringify(item)).join(',\n')}]`;
  const head = `{"client":"geth ${client}, Shanghai",\n"transactions":${lines(transactions)},\n"later":${JSON.stringify(later)},\n"waiting":${JSON.stringify(waiting)},`;
  writeFileSync(new URL('geth.json', vectors), `${head}\n"requests":${lines(recorded)}}\n`);
  console.log(`${recorded.length} answers of geth ${client}`);
} finally {
  await node.stop();
}
