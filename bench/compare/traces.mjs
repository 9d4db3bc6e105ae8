// Traces and log queries of `rootlight dev` by processor time: calls with callTracer against the same calls without it,
// prestateTracer on a block of a hundred calls beside go-ethereum, and logs of ten thousand blocks beside anvil and
// go-ethereum. Prints medians of the rounds.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. [ANVIL=..] [GETH=..] [ROUNDS=5] node traces.mjs [calls|package|prestate|logs ..]
import { startGeth } from './geth.mjs';
import { Connection, Node, call, median } from './node.mjs';
import { CHAIN_ID, TOKEN, balanceOf, send, setup, stranger, transfer, transferCall, wallets } from './wallets.mjs';

/** Counted rounds; one more before them warms up. */
const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** Processor seconds of a round, at least: the system counts hundredths. */
const LEAST = 0.5;
/** Calls in one message, so that HTTP costs little beside them. */
const BATCH = 50;
/** Transfers of the block that is traced. */
const TRANSFERS = 100;
/** Blocks in which logs are searched, of which every hundredth has one. */
const [BLOCKS, APART] = [10_000, 100];
/** Inner calls of the router; its code needs two hexadecimal digits. */
const INNER = 20;
/** Calls of a round in the package. */
const IN_PACKAGE = 3_000;

/** A contract that calls the token again and again, one that loops, one that emits a log, and an address without code. */
const ROUTER = stranger(1_000_001);
const LOOP = stranger(1_000_002);
const EMITTER = stranger(1_000_003);
const SILENT = stranger(1_000_004);

const codes = {
  // CALLDATASIZE PUSH1 0 PUSH1 0 CALLDATACOPY PUSH1 times; JUMPDEST, STATICCALL of the token with the same data, POP,
  // PUSH1 1 SWAP1 SUB DUP1 PUSH1 8 JUMPI; PUSH1 32 PUSH1 128 RETURN
  [ROUTER]: `0x36600060003760${INNER.toString(16)}5b6020608036600073${TOKEN.slice(2)}5afa50600190038060085760206080f3`,
  // PUSH2 1000; JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 3 JUMPI; STOP
  [LOOP]: '0x6103e85b600190038060035700',
  // PUSH1 0 PUSH1 0 LOG0
  [EMITTER]: '0x60006000a0',
};
const rich = `0x${(10n ** 24n).toString(16)}`;
const alloc = Object.fromEntries([
  ...wallets.map(({ address }) => [address.slice(2), { balance: rich }]),
  ...Object.entries(codes).map(([address, code]) => [address.slice(2), { balance: '0x0', code }]),
]);

const commands = {
  rootlight: [[process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', '14441'], 14441],
  anvil: [
    [process.env.ANVIL, '--silent', '--port', '14442', '--chain-id', `${CHAIN_ID}`, '--no-mining', '--gas-price', '0', '--base-fee', '0', '--gas-limit', '100000000'],
    14442,
  ],
  geth: [[process.env.GETH], 14444],
};

const hex = (number) => `0x${number.toString(16)}`;

async function start(name, [command, port]) {
  const node = name === 'geth' ? await startGeth(command[0], port, CHAIN_ID, alloc) : await Node.start(command, port);
  Object.assign(node, { name });
  if (name === 'geth') return node;
  node.mine = () => node.connection.call('evm_mine');
  if (name === 'anvil') {
    for (const { address } of wallets) await node.connection.call('anvil_setBalance', address, rich);
  }
  for (const [address, code] of Object.entries(codes)) await node.connection.call('anvil_setCode', address, code);
  return node;
}

/** Mines empty blocks. */
const pass = (node, blocks) => (node.name === 'geth' ? node.mine(blocks) : node.connection.call('anvil_mine', hex(blocks)));

/** Deploys the token and mines a block of transfers; returns the number of this block. */
async function prepare(node, transactions) {
  for (const part of transactions) {
    for (const transaction of part) await node.connection.call('eth_sendRawTransaction', transaction);
    await node.mine();
  }
  const { number, transactions: mined } = await node.connection.call('eth_getBlockByNumber', 'latest', false);
  if (mined.length < TRANSFERS) throw new Error(`${node.name}: ${mined.length} transactions`);
  return number;
}

/** Mines the blocks in which logs are searched; returns their range. */
async function mineLogs(node, transactions) {
  const first = BigInt(await node.connection.call('eth_blockNumber')) + 1n;
  for (const transaction of transactions) {
    await node.connection.call('eth_sendRawTransaction', transaction);
    await node.mine();
    await pass(node, APART - 1);
  }
  return { fromBlock: hex(first), toBlock: hex(first + BigInt(BLOCKS) - 1n) };
}

/** Sends a body until the node has used `LEAST` seconds of processor time; returns the microseconds of one response. */
async function spent(node, body) {
  const request = Connection.request(body);
  const before = node.processorTime();
  for (let sent = 1; ; sent++) {
    const answer = await node.connection.send(request);
    if (sent === 1 && answer.includes('"error"')) throw new Error(`${node.name}: ${answer.slice(0, 300)}`);
    const used = node.processorTime() - before;
    if (used >= LEAST) return (1e6 * used) / sent;
  }
}

/** Measures bodies in turn: medians of the times, and of each round's ratios to the first. */
async function inTurn(sides) {
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const times = [];
    for (const [node, body] of sides) times.push(await spent(node, body));
    if (round > 0) rounds.push(times);
  }
  return sides.map((_, i) => ({
    time: median(rounds.map((times) => times[i])),
    ratio: median(rounds.map((times) => times[i] / times[0])),
    all: rounds.map((times) => times[i] / times[0]).sort((a, b) => a - b),
  }));
}

const messages = () => ({
  'transfer of an ERC-20': { from: wallets[0].address, ...transferCall(stranger(9_999), 1n) },
  [`${INNER} inner calls of balanceOf`]: { ...balanceOf(wallets[0].address), to: ROUTER },
  'loop of 1,000': { to: LOOP },
});
const TRACED = [['eth_call'], ['debug_traceCall', { tracer: 'callTracer' }]];

async function traced(node) {
  const batch = (...request) => `[${Array.from({ length: BATCH }, () => call(...request))}]`;
  for (const [name, message] of Object.entries(messages())) {
    const [plain, full] = await inTurn(TRACED.map(([method, ...options]) => [node, batch(method, message, 'latest', ...options)]));
    const spread = `${full.all[0].toFixed(2)} to ${full.all.at(-1).toFixed(2)}`;
    console.log(`${name}: eth_call ${(plain.time / BATCH).toFixed(1)} us, callTracer ${(full.time / BATCH).toFixed(1)} us, ratio ${full.ratio.toFixed(2)} (${spread})`);
  }
}

/** The same calls to the development chain of the package, on this thread. */
async function tracedInPackage(transactions) {
  const { createDevChain } = await import('../../pkg/dev.js');
  const chain = await createDevChain({ genesis: 'regtest', blockTime: 'manual' });
  const ask = (method, ...params) => chain.request({ method, params });
  for (const transaction of transactions) {
    await ask('eth_sendRawTransaction', transaction);
    await ask('evm_mine');
  }
  for (const [address, code] of Object.entries(codes)) await ask('anvil_setCode', address, code);
  const timed = async (...request) => {
    const { user: before } = process.cpuUsage();
    for (let i = 0; i < IN_PACKAGE; i++) await ask(...request);
    return (process.cpuUsage().user - before) / IN_PACKAGE;
  };
  for (const [name, message] of Object.entries(messages())) {
    const rounds = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const times = [];
      for (const [method, ...options] of TRACED) times.push(await timed(method, message, 'latest', ...options));
      if (round > 0) rounds.push(times);
    }
    const [plain, full] = [0, 1].map((i) => median(rounds.map((times) => times[i])));
    const ratio = median(rounds.map(([one, other]) => other / one));
    console.log(`in the package, ${name}: eth_call ${plain.toFixed(1)} us, callTracer ${full.toFixed(1)} us, ratio ${ratio.toFixed(2)}`);
  }
}

async function beside(name, running, body) {
  const results = await inTurn(running.map((node) => [node, body(node)]));
  const shown = results.map(({ time, ratio }, i) => `${running[i].name} ${time.toFixed(0)} us${i > 0 ? ` (rootlight: ${(1 / ratio).toFixed(2)} of it)` : ''}`);
  console.log(`${name}: ${shown.join('; ')}`);
}

const chosen = process.argv.slice(2);
const wants = (name) => chosen.length === 0 || chosen.includes(name);
const running = [];
try {
  const deployed = await setup();
  if (wants('package')) await tracedInPackage(deployed);
  const transactions = deployed.map((transaction) => [transaction]);
  transactions.push([]);
  for (let i = 0; i < TRANSFERS; i++) transactions.at(-1).push(await transfer(i % wallets.length, stranger(i), 1n));
  const emissions = [];
  for (let i = 0; i < BLOCKS / APART; i++) emissions.push(await send(i % wallets.length, EMITTER, 100_000));
  for (const [name, command] of Object.entries(commands)) {
    if (!command[0][0]) continue;
    const node = await start(name, command);
    running.push(node);
    node.block = await prepare(node, transactions);
  }
  const [ours] = running;
  const others = running.filter(({ name }) => name !== 'anvil');
  if (wants('calls')) await traced(ours);
  if (wants('prestate')) {
    for (const diffMode of [false, true]) {
      const options = { tracer: 'prestateTracer', tracerConfig: { diffMode } };
      const name = `prestateTracer${diffMode ? ', changes' : ''}, block of ${TRANSFERS} transfers`;
      await beside(name, others, (node) => call('debug_traceBlockByNumber', node.block, options));
    }
  }
  // Ten thousand blocks push the traced one out of the history that a chain keeps states of.
  if (wants('logs')) {
    for (const node of running) node.range = await mineLogs(node, emissions);
    for (const [name, address, found] of [[`${BLOCKS / APART} logs`, EMITTER, BLOCKS / APART], ['no logs', SILENT, 0]]) {
      for (const node of running) {
        const logs = await node.connection.call('eth_getLogs', { ...node.range, address });
        if (logs.length !== found) throw new Error(`${node.name}: ${logs.length} logs`);
      }
      await beside(`eth_getLogs, ${name} in ${BLOCKS} blocks`, running, (node) => call('eth_getLogs', { ...node.range, address }));
    }
  }
} finally {
  for (const node of running) await node.stop();
}
