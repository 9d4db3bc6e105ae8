// The cost of JSON-RPC requests that wrk sends: rootlight dev beside anvil, go-ethereum and an HTTP server that does nothing
// but answer. Prints the server's processor time per request in microseconds, as the median of the rounds, and its ratio to
// rootlight's.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. ANVIL=.. [GETH=..] FLOOR=.. [PACED=..] [ROUNDS=5] node rpc.mjs [WORKLOAD..]
//
// FLOOR and PACED are the examples `http_floor` (the same HTTP stack with a constant answer) and `paced_client` (waiting
// times at half load) of the native crate. GETH is
// go-ethereum's program (`go install github.com/ethereum/go-ethereum/cmd/geth@VERSION`); it takes part if it is given.
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startGeth } from './geth.mjs';
import { Connection, Node, call, median } from './node.mjs';
import { CHAIN_ID, balanceOf, send, setup, stranger, transfer, wallets } from './wallets.mjs';

const { WebSocket } = createRequire(createRequire(new URL('../../tests/clients/', import.meta.url)).resolve('ethers'))('ws');

const run = promisify(execFile);
/** Connections at half load, and requests of each. */
const [PACED_CONNECTIONS, PACED_REQUESTS] = [4, 4_000];
/** Counted rounds; one more before them warms up. */
const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** Connections of wrk, each one request at a time, and the seconds of a round. */
const [CONNECTIONS, SECONDS] = [16, 1];
const EMPTY_BLOCKS = 1_000;
const LOGS = 5_000;
const SUBSCRIBERS = 200;
const NOTIFIED_BLOCKS = 50;

/** Code that counts down from `times`; each pass emits a log without topics if `logs`. */
function loop(times, logs) {
  const count = times.toString(16).padStart(4, '0');
  // PUSH2 times, JUMPDEST, [PUSH1 0, PUSH1 0, LOG0], PUSH1 1, SWAP1, SUB, DUP1, PUSH1 3, JUMPI, STOP
  return `0x61${count}5b${logs ? '60006000a0' : ''}6001900380600357` + '00';
}

const LOOP = stranger(1_000_001);
const EMITTER = stranger(1_000_002);
const SILENT = stranger(1_000_003);

const nodes = {
  rootlight: [[process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', '14441'], 14441],
  anvil: [
    [process.env.ANVIL, '--silent', '--port', '14442', '--chain-id', `${CHAIN_ID}`, '--no-mining', '--gas-price', '0', '--base-fee', '0', '--gas-limit', '100000000'],
    14442,
  ],
  geth: [[process.env.GETH], 14444],
  floor: [[process.env.FLOOR, '14443'], 14443],
};

/** Accounts of go-ethereum's genesis. The other nodes get theirs from their own genesis or by methods. */
const alloc = Object.fromEntries([
  ...wallets.map(({ address }) => [address.slice(2), { balance: `0x${(10n ** 24n).toString(16)}` }]),
  ...[[LOOP, loop(1_000, false)], [EMITTER, loop(1_000, true)]].map(([address, code]) => [address.slice(2), { balance: '0x0', code }]),
]);

async function start(name, command, port) {
  if (name === 'geth') return startGeth(command[0], port, CHAIN_ID, alloc);
  const node = await Node.start(command, port);
  node.mine = () => node.connection.call('evm_mine');
  return node;
}

/** A block with a hundred transfers, a thousand empty blocks, and a block with many logs. */
async function prepare(node, transactions, emissions) {
  const { connection } = node;
  if (node.name === 'anvil') {
    for (const { address } of wallets) await connection.call('anvil_setBalance', address, `0x${(10n ** 24n).toString(16)}`);
  }
  for (const part of transactions) {
    for (const transaction of part) await connection.call('eth_sendRawTransaction', transaction);
    await node.mine();
  }
  const block = await connection.call('eth_getBlockByNumber', 'latest', false);
  if (block.transactions.length < 100) throw new Error(`${node.name}: ${block.transactions.length} transactions`);
  const first = BigInt(block.number) + 1n;
  if (node.name === 'geth') {
    await node.mine(EMPTY_BLOCKS);
  } else {
    await connection.call('anvil_mine', `0x${EMPTY_BLOCKS.toString(16)}`);
    for (const [address, code] of [[LOOP, loop(1_000, false)], [EMITTER, loop(1_000, true)]]) {
      await connection.call('anvil_setCode', address, code);
    }
  }
  for (const transaction of emissions) {
    await connection.call('eth_sendRawTransaction', transaction);
    await node.mine();
  }
  const hex = (number) => `0x${number.toString(16)}`;
  const range = { fromBlock: hex(first), toBlock: hex(first + BigInt(EMPTY_BLOCKS) - 1n) };
  const logs = await connection.call('eth_getLogs', { fromBlock: hex(first), toBlock: 'latest', address: EMITTER });
  if (logs.length !== LOGS) throw new Error(`${node.name}: ${logs.length} logs`);
  return { full: block.number, hash: block.transactions[0], from: hex(first), range };
}

function workloads({ full, hash, from, range }) {
  const holder = wallets[1].address;
  const send = { ...balanceOf(stranger(1)), from: holder };
  const one = {
    eth_blockNumber: ['eth_blockNumber'],
    eth_chainId: ['eth_chainId'],
    eth_getBalance: ['eth_getBalance', holder, 'latest'],
    'eth_call, ERC-20': ['eth_call', balanceOf(holder), 'latest'],
    'eth_call, loop of 1,000': ['eth_call', { to: LOOP }, 'latest'],
    eth_estimateGas: ['eth_estimateGas', send],
    'block of 100 full transactions': ['eth_getBlockByNumber', full, true],
    [`eth_getLogs, ${LOGS} logs`]: ['eth_getLogs', { fromBlock: from, toBlock: 'latest', address: EMITTER }],
    [`eth_getLogs, none in ${EMPTY_BLOCKS} blocks`]: ['eth_getLogs', { ...range, address: SILENT }],
    eth_getTransactionReceipt: ['eth_getTransactionReceipt', hash],
  };
  const all = Object.fromEntries(Object.entries(one).map(([name, [method, ...params]]) => [name, call(method, ...params)]));
  const balances = Array.from({ length: 50 }, () => call('eth_getBalance', holder, 'latest'));
  return { ...all, 'batch of 50 balances': `[${balances}]` };
}

/** Lets wrk send requests for a round; returns the node's processor seconds for one. */
async function pass(node, body) {
  const script = fileURLToPath(new URL('post.lua', import.meta.url));
  const flags = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, `http://127.0.0.1:${node.port}/`];
  const before = node.processorTime();
  const { stdout } = await run('wrk', flags, { env: { ...process.env, BODY: body } });
  const used = node.processorTime() - before;
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${node.name}: ${stdout}`);
  return used / Number(/(\d+) requests in/.exec(stdout)[1]);
}

async function measure(node, body) {
  const text = node.name === 'floor' ? '' : await node.connection.send(Connection.request(body));
  if (text.includes('"error"')) throw new Error(`${node.name}: ${text.slice(0, 300)}`);
  const samples = [];
  for (let round = 0; round <= ROUNDS; round++) samples.push(await pass(node, body));
  return 1e6 * median(samples.slice(1));
}

/** The median and the 99th percentile of the waiting times at half of the highest rate, in milliseconds. */
async function atHalfLoad(port, request) {
  const file = join(tmpdir(), `rootlight-request-${process.pid}`);
  writeFileSync(file, request);
  try {
    const { stdout } = await run(process.env.PACED, [port, file, PACED_REQUESTS, PACED_CONNECTIONS].map(String));
    const [half, p99] = stdout.split(' ').map((micros) => Number(micros) / 1_000);
    return { half, p99 };
  } finally {
    rmSync(file);
  }
}

/** Processor time of a `newHeads` notification in microseconds, and memory of a subscriber in kilobytes. */
async function subscribers(node) {
  const before = node.resident();
  let notified = 0;
  const sockets = await Promise.all(Array.from({ length: SUBSCRIBERS }, () => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${node.socketPort ?? node.port}`);
    socket.on('open', () => socket.send(call('eth_subscribe', 'newHeads')));
    socket.on('error', reject);
    socket.on('message', (data) => (data.includes('eth_subscription') ? notified++ : resolve(socket)));
  })));
  const memory = ((node.resident() - before) * 1_048.576) / SUBSCRIBERS;
  const start = node.processorTime();
  for (let i = 1; i <= NOTIFIED_BLOCKS; i++) {
    await node.mine(1);
    while (notified < i * SUBSCRIBERS) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const used = node.processorTime() - start;
  sockets.forEach((socket) => socket.terminate());
  return { each: (1e6 * used) / (NOTIFIED_BLOCKS * SUBSCRIBERS), memory };
}

const chosen = process.argv.slice(2);
const running = [];
try {
  const transactions = (await setup()).map((transaction) => [transaction]);
  transactions.push([]);
  for (let i = 0; i < 100; i++) transactions.at(-1).push(await transfer(i % wallets.length, stranger(i), 1n));
  const emissions = [];
  for (let i = 0; i < LOGS / 1_000; i++) emissions.push(await send(0, EMITTER, 0x100000));
  const requests = {};
  for (const [name, [command, port]] of Object.entries(nodes)) {
    if (!command[0]) continue;
    const node = Object.assign(await start(name, command, port), { name, port });
    running.push(node);
    if (name !== 'floor') requests[name] = workloads(await prepare(node, transactions, emissions));
  }
  const floor = running.find(({ name }) => name === 'floor');
  const least = floor ? await measure(floor, requests.rootlight.eth_blockNumber) : 0;
  console.log(`HTTP alone: ${least.toFixed(1)} us of processor time per request`);
  const ours = running.find(({ name }) => name === 'rootlight');
  const others = running.filter(({ name }) => name === 'anvil' || name === 'geth');
  for (const name of Object.keys(requests.rootlight)) {
    if (chosen.length > 0 && !chosen.some((word) => name.includes(word))) continue;
    const own = await measure(ours, requests.rootlight[name]);
    const compared = [];
    for (const other of others) {
      const theirs = await measure(other, requests[other.name][name]);
      const above = (own - least) / (theirs - least);
      compared.push(`${other.name} ${theirs.toFixed(1)} us, ratio ${(own / theirs).toFixed(2)}, above HTTP alone ${above.toFixed(2)}`);
    }
    console.log([`${name}: ${own.toFixed(1)} us`, ...compared].join('; '));
  }
  if (process.env.PACED && (chosen.length === 0 || chosen.includes('latency'))) {
    for (const node of running.filter(({ name }) => name !== 'floor')) {
      for (const name of ['eth_getBalance', 'eth_call, ERC-20']) {
        const { half, p99 } = await atHalfLoad(node.port, Connection.request(requests[node.name][name]));
        console.log(`at half load, ${node.name}, ${name}: median ${half.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ratio ${(p99 / half).toFixed(1)}`);
      }
    }
  }
  if (chosen.length === 0 || chosen.includes('subscribers')) {
    for (const node of running.filter(({ name }) => name !== 'floor')) {
      const { each, memory } = await subscribers(node);
      console.log(`newHeads, ${node.name}: ${each.toFixed(1)} us per notification, ${memory.toFixed(0)} kB per subscriber`);
    }
  }
  for (const node of running) console.log(`resident at the end, ${node.name}: ${node.resident().toFixed(0)} MiB`);
} finally {
  for (const node of running) await node.stop();
}
