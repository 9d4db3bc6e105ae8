// Start and reads of `rootlight dev`: time to the first answer, memory right after it, and the same reads on
// a chain of ten blocks and on one of twenty thousand blocks.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. node reads.mjs
//
// ROOTLIGHT is the path of the program, ROOTLIGHT_TOKEN that of a compiled ERC-20 contract (JSON, see soak/chain.mjs).
import { Connection, Node, call, median } from './node.mjs';
import { balanceOf, setup, stranger, transfer, wallets } from './wallets.mjs';

/** Starts that are timed. */
const STARTS = 15;
/** Blocks of the short chain and of the long one. */
const SHORT = 10;
const LONG = 20_000;
/** Most blocks that one request may mine. */
const AT_ONCE = 10_000;
/** Counted rounds; one more before them is a warm-up. */
const ROUNDS = 7;
/** Requests of a round to each chain. */
const READS = 1_500;

const command = (port) => [process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', `${port}`];

async function starts() {
  const [times, memory] = [[], []];
  for (let i = 0; i < STARTS; i++) {
    const node = await Node.start([process.env.ROOTLIGHT, 'dev', '--http-port', '14441'], 14441);
    times.push(node.started);
    memory.push(node.resident());
    await node.stop();
  }
  console.log(`first answer after ${median(times).toFixed(0)} ms (at most ${Math.max(...times).toFixed(0)}), then ${Math.max(...memory).toFixed(1)} MiB resident`);
}

/** Starts a chain with two blocks of transactions, then empty blocks up to a height. */
async function chain(transactions, height, port) {
  const node = await Node.start(command(port), port);
  for (const part of transactions) {
    for (const transaction of part) await node.connection.call('eth_sendRawTransaction', transaction);
    await node.connection.call('evm_mine');
  }
  for (let at = transactions.length; at < height; at += AT_ONCE) {
    const blocks = Math.min(AT_ONCE, height - at);
    await node.connection.call('evm_mine', { blocks });
  }
  return node;
}

async function pass(node, request) {
  const [clock, processor] = [performance.now(), node.processorTime()];
  for (let i = 0; i < READS; i++) await node.connection.send(request);
  return { clock: performance.now() - clock, processor: node.processorTime() - processor };
}

await starts();
const transactions = [await setup(), []];
for (let i = 0; i < 10; i++) transactions[1].push(await transfer(0, stranger(i), 1n));
const running = [];
try {
  for (const [height, port] of [[SHORT, 14442], [LONG, 14443]]) running.push(await chain(transactions, height, port));
  const [short, long] = running;
  console.log(`with ${SHORT} blocks ${short.resident().toFixed(1)} MiB resident, with ${LONG} ${long.resident().toFixed(1)}`);
  const reads = {
    'eth_getBalance, latest': ['eth_getBalance', wallets[1].address, 'latest'],
    'eth_call balanceOf, latest': ['eth_call', balanceOf(stranger(1)), 'latest'],
    'eth_getBlockByNumber, latest': ['eth_getBlockByNumber', 'latest', false],
    'eth_getBlockByNumber, block 1 with transactions': ['eth_getBlockByNumber', '0x1', true],
  };
  for (const [name, [method, ...params]] of Object.entries(reads)) {
    const request = Connection.request(call(method, ...params));
    const samples = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const pair = [await pass(short, request), await pass(long, request)];
      if (round > 0) samples.push(pair);
    }
    const ratio = median(samples.map(([one, other]) => other.clock / one.clock));
    const used = (at) => samples.reduce((sum, pair) => sum + pair[at].processor, 0);
    console.log(`${name}: on ${LONG} blocks ${ratio.toFixed(2)} times as long as on ${SHORT}, processor time ${(used(1) / used(0)).toFixed(2)}`);
  }
} finally {
  for (const node of running) await node.stop();
}
