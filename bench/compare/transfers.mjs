// ERC-20 transfers sent and mined over loopback: rootlight dev beside anvil and, if its command is given, the
// reference node. Prints rates and processor times as ratios to rootlight's.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. ANVIL=.. [REFERENCE="command .."] node transfers.mjs
//
// REFERENCE is the command that starts the reference node on regtest, with JSON-RPC on port 14444 and mining
// on demand (miner.client.autoMine and miner.client.enabled off).
import { Connection, Node, call, median } from './node.mjs';
import { CHAIN_ID, balanceOf, setup, stranger, transfer, wallets } from './wallets.mjs';

/** Rounds; the first one is a warm-up and does not count. */
const ROUNDS = 6;
/** Transfers of a round that are mined one by one. */
const SINGLE = 60;
/** Full blocks of a round. */
const BLOCKS = 3;
/** Transfers of each account in a full block. */
const PER_ACCOUNT = 10;
/** Calls in a message, the most that the reference node accepts. */
const BATCH = 50;

const nodes = {
  rootlight: [[process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', '14441'], 14441],
  anvil: [
    [process.env.ANVIL, '--silent', '--port', '14442', '--chain-id', `${CHAIN_ID}`, '--no-mining', '--gas-price', '0', '--base-fee', '0'],
    14442,
  ],
};
if (process.env.REFERENCE) nodes.reference = [process.env.REFERENCE.split(' '), 14444];

const raw = (transaction) => call('eth_sendRawTransaction', transaction);
const request = Connection.request;
const mine = request(call('evm_mine'));

function good(text) {
  if (text.includes('"error"')) throw new Error(text.slice(0, 400));
  return text;
}

/**
 * The requests of one round, the same for every node. Each transfer has a receiver of its own: numbers from 0 on for transfers that
 * are mined one by one, from 10,000 on for full blocks, a thousand for each block.
 */
async function round(number) {
  const single = [];
  for (let i = 0; i < SINGLE; i++) {
    const to = stranger(number * 100_000 + i);
    single.push(request(raw(await transfer(i % wallets.length, to, 1n))));
  }
  const blocks = [];
  for (let block = 0; block < BLOCKS; block++) {
    const all = [];
    for (let i = 0; i < PER_ACCOUNT * wallets.length; i++) {
      const to = stranger(number * 100_000 + 10_000 + block * 1_000 + i);
      all.push(raw(await transfer(i % wallets.length, to, 1n)));
    }
    const parts = Array.from({ length: all.length / BATCH }, (_, i) => all.slice(i * BATCH, (i + 1) * BATCH));
    blocks.push(parts.map((part) => request(`[${part}]`)));
  }
  return { single, blocks };
}

async function timed(node, work) {
  const [clock, processor] = [performance.now(), node.processorTime()];
  await work(node.connection);
  return { clock: performance.now() - clock, processor: node.processorTime() - processor };
}

async function oneByOne(connection, { single }) {
  for (const transaction of single) {
    good(await connection.send(transaction));
    good(await connection.send(mine));
  }
}

async function full(connection, { blocks }) {
  for (const parts of blocks) {
    for (const part of parts) good(await connection.send(part));
    good(await connection.send(mine));
  }
}

async function prepare(node, transactions) {
  if (node.name === 'anvil') {
    for (const { address } of wallets) await node.connection.call('anvil_setBalance', address, `0x${(10n ** 24n).toString(16)}`);
  }
  for (const transaction of transactions) {
    await node.connection.call('eth_sendRawTransaction', transaction);
    await node.connection.call('evm_mine');
  }
}

/** Checks at the end that the first and last transfers of each round have arrived on a node. */
async function check(node, rounds) {
  for (let number = 0; number < rounds; number++) {
    const ends = [0, SINGLE - 1, 10_000, 10_000 + (BLOCKS - 1) * 1_000 + PER_ACCOUNT * wallets.length - 1];
    for (const index of ends) {
      const answer = await node.connection.call('eth_call', balanceOf(stranger(number * 100_000 + index)), 'latest');
      if (BigInt(answer) !== 1n) throw new Error(`${node.name}: a transfer is missing`);
    }
  }
}

function report(title, samples, count) {
  const names = Object.keys(samples);
  for (const name of names) {
    const rate = median(samples[name].map(({ clock }) => (1000 * count) / clock));
    const processor = samples[name].reduce((sum, sample) => sum + sample.processor, 0);
    const ratios = samples.rootlight.map((ours, i) => samples[name][i].clock / ours.clock);
    const used = processor / samples.rootlight.reduce((sum, sample) => sum + sample.processor, 0);
    const spread = `${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)}`;
    const theirs = name === 'rootlight' ? '' : `; rootlight is ${median(ratios).toFixed(1)} times as fast (${spread}), with 1/${used.toFixed(1)} of the processor time`;
    console.log(`${title}, ${name}: ${rate.toFixed(0)} transfers/s${theirs}`);
  }
}

const running = [];
try {
  for (const [name, [command, port]] of Object.entries(nodes)) {
    running.push(Object.assign(await Node.start(command, port), { name }));
  }
  const first = await setup();
  for (const node of running) await prepare(node, first);
  const samples = [oneByOne, full].map(() => Object.fromEntries(running.map(({ name }) => [name, []])));
  for (let number = 0; number < ROUNDS; number++) {
    const requests = await round(number);
    for (const [kind, work] of [oneByOne, full].entries()) {
      for (const node of running) {
        const sample = await timed(node, (connection) => work(connection, requests));
        if (number > 0) samples[kind][node.name].push(sample);
      }
    }
  }
  for (const node of running) await check(node, ROUNDS);
  report('sent and mined one by one', samples[0], SINGLE);
  report(`blocks of ${PER_ACCOUNT * wallets.length}`, samples[1], BLOCKS * PER_ACCOUNT * wallets.length);
} finally {
  for (const node of running) await node.stop();
}
