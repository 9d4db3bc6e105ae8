// Proven calls of an ERC-20 token's balanceOf: Rootlight on its own development chain, Lodestar's prover and
// Patronum on anvil. The other clients verify Ethereum's tries, which Rootstock does not use; both chains
// hold the same token and holders. All clients reach their node through a proxy that counts requests and
// bytes.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. ANVIL=.. node peers.mjs
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Node, median } from './node.mjs';
import { ask, proxy } from './proxy.mjs';
import { CHAIN_ID, balanceOf, setup, stranger, transfer, wallets } from './wallets.mjs';

/** Rounds of calls in one state; the first one is a warm-up and does not count. */
const ROUNDS = 6;
const CALLS = 50;
/** Number of blocks after each of which one call is made. */
const BLOCKS = 12;
/** Longest wait for a client, in milliseconds. */
const PATIENCE = 60_000;

const [DEV, ANVIL] = [14_461, 14_462];
const commands = {
  rootlight: [[process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', `${DEV}`], DEV],
  anvil: [
    // Both other clients know the rules up to Shanghai.
    [process.env.ANVIL, '--silent', '--port', `${ANVIL}`, '--chain-id', `${CHAIN_ID}`, '--no-mining', '--gas-price', '0', '--base-fee', '0', '--hardfork', 'shanghai'],
    ANVIL,
  ],
};

const isOurs = (method) => method.startsWith('rootlight_');
const none = () => false;

/** Name, client, node, port, methods that the node does not have. */
const SUBJECTS = [
  ['Rootlight, witness', 'native', 'rootlight', 14_463, none],
  ['Rootlight, eth_getProof', 'native', 'rootlight', 14_464, isOurs],
  ['Rootlight in Node.js, witness', 'package', 'rootlight', 0, none],
  ['Rootlight in Node.js, eth_getProof', 'package', 'rootlight', 0, isOurs],
  ["Lodestar's prover", 'lodestar', 'anvil', 0, none],
  ['Patronum', 'patronum', 'anvil', 0, none],
];

/** Methods that a light client follows the chain with; all others serve calls. */
const FOLLOWING = ['eth_blockNumber', 'rootlight_getHeaders', 'eth_getBlockByNumber', 'eth_chainId', 'net_version'];

/** A client in its own process. */
class Client {
  #child;
  /** The working folder; one of the clients writes a log there. */
  #folder = mkdtempSync(join(tmpdir(), 'rootlight-peer-'));

  static async open(kind, options) {
    const client = new Client();
    const child = fileURLToPath(new URL('peers/child.mjs', import.meta.url));
    client.#child = fork(child, [kind], { cwd: client.#folder, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    try {
      await client.order('open', options);
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  order(order, what) {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const settle = (finish, value) => {
        clearTimeout(late);
        child.off('exit', gone).off('message', answered);
        finish(value);
      };
      const gone = () => settle(reject, new Error(`ended during ${order}`));
      const answered = ({ value, error }) => (error === undefined ? settle(resolve, value) : settle(reject, new Error(error)));
      const late = setTimeout(() => settle(reject, new Error(`no answer to ${order}`)), PATIENCE);
      child.once('exit', gone).once('message', answered);
      if (child.connected) child.send({ order, what });
      else gone();
    });
  }

  async close() {
    await this.order('close').catch(() => {});
    this.#child.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function mine(node, transactions) {
  for (const transaction of transactions) await node.connection.call('eth_sendRawTransaction', transaction);
  await node.connection.call('evm_mine');
}

const headOf = (node) => node.connection.call('eth_getBlockByNumber', 'latest', false);

/** Creates the same token and holders on every node. */
async function prepare(nodes) {
  for (const { address } of wallets) await nodes.anvil.connection.call('anvil_setBalance', address, `0x${(10n ** 24n).toString(16)}`);
  const first = await setup();
  for (const node of Object.values(nodes)) for (const transaction of first) await mine(node, [transaction]);
  for (let holder = 0; holder < ROUNDS * CALLS; holder += wallets.length) {
    const batch = [];
    for (let from = 0; from < wallets.length; from++) batch.push(await transfer(from, stranger(holder + from), 1n));
    for (const node of Object.values(nodes)) await mine(node, batch);
  }
}

/** Requests and bytes that passed the proxy for calls. */
function passed({ upstream, kind }) {
  const follows = kind === 'native' || kind === 'package';
  const mine = upstream.seen.filter(({ methods }) => !follows || methods.some((method) => !FOLLOWING.includes(method)));
  const sum = (count) => mine.reduce((all, exchange) => all + count(exchange), 0);
  return { http: mine.length, calls: sum(({ methods }) => methods.length), bytes: sum(({ bytes }) => bytes) };
}

/** The address is in lower case, because the other clients treat a mixed-case address and its access list entry as different. */
function question(holder) {
  const { to, data } = balanceOf(stranger(holder));
  return { to: to.toLowerCase(), data };
}

async function measured(subject, holders) {
  subject.upstream.seen.length = 0;
  const done = await subject.client.order('calls', holders.map(question));
  for (const { result } of done) if (BigInt(result) !== 1n) throw new Error(`${subject.name}: a wrong balance: ${result}`);
  return { ...passed(subject), times: done.map(({ milliseconds }) => milliseconds) };
}

function report(title, subjects) {
  const spent = ({ times }) => times.reduce((sum, time) => sum + time, 0);
  for (const { name, samples } of subjects) {
    const times = samples.flatMap((sample) => sample.times);
    const each = (field) => samples.reduce((sum, sample) => sum + sample[field], 0) / times.length;
    const rate = median(samples.map((sample) => (1_000 * sample.times.length) / spent(sample)));
    const ratios = samples.map((sample, round) => spent(sample) / spent(subjects[0].samples[round]));
    const spread = `${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)}`;
    console.log(
      `${title}, ${name}: ${rate.toFixed(0)} calls/s, median ${median(times).toFixed(1)} ms (${median(ratios).toFixed(1)} times ${subjects[0].name}: ${spread}); ` +
        `${each('http').toFixed(2)} HTTP, ${each('calls').toFixed(2)} calls, ${(each('bytes') / 1_000).toFixed(1)} kB each`,
    );
  }
}

/** Calls for a different holder each time, all in one state; the clients take turns. */
async function oneState(subjects) {
  for (const subject of subjects) subject.samples = [];
  for (let round = 0; round < ROUNDS; round++) {
    const holders = Array.from({ length: CALLS }, (_, i) => round * CALLS + i);
    for (const subject of subjects) {
      const sample = await measured(subject, holders);
      if (round > 0) subject.samples.push(sample);
    }
  }
  report('in one state', subjects);
}

/** Makes one call after each block that changes the token. */
async function newStates(title, subjects, nodes, blocks = BLOCKS) {
  for (const subject of subjects) subject.samples = [];
  for (let block = 0; block < blocks; block++) {
    const change = await transfer(block % wallets.length, stranger(1_000_000 + block), 1n);
    for (const node of Object.values(nodes)) await mine(node, [change]);
    for (const subject of subjects) {
      await subject.client.order('follow', await headOf(nodes[subject.node]));
      subject.samples.push(await measured(subject, [block]));
    }
  }
  report(title, subjects);
}

/** Prints the result of a client that verifies Ethereum's tries on a Rootstock chain. */
async function foreign(name, kind, node) {
  const upstream = await proxy(ask(node.port));
  let client;
  try {
    client = await Client.open(kind, { url: upstream.url, block: await headOf(node) });
    const [{ result }] = await client.order('calls', [question(0)]);
    console.log(`${name} on the Rootstock chain: ${result}`);
  } catch (error) {
    console.log(`${name} on the Rootstock chain: ${error.message.slice(0, 200)}`);
  } finally {
    await client?.close();
    upstream.close();
  }
}

const nodes = {};
const subjects = [];
try {
  for (const [name, [command, port]] of Object.entries(commands)) nodes[name] = await Node.start(command, port);
  await prepare(nodes);
  const { hash: genesis } = await nodes.rootlight.connection.call('eth_getBlockByNumber', '0x0', false);
  for (const [name, kind, node, port, hidden] of SUBJECTS) {
    const upstream = await proxy(ask(nodes[node].port), { hidden });
    try {
      const client = await Client.open(kind, { url: upstream.url, genesis, block: await headOf(nodes[node]), port });
      subjects.push({ name, kind, node, upstream, client });
    } catch (error) {
      console.log(`${name} does not run: ${error.message.slice(0, 300)}`);
      upstream.close();
    }
  }
  await newStates('first call of all', subjects, nodes, 1);
  await newStates('first call after a block', subjects, nodes);
  await oneState(subjects);
  await newStates(`first call after a block, ${ROUNDS * CALLS} holders asked for before`, subjects, nodes);
  for (const [name, kind] of SUBJECTS.filter(([, , node]) => node === 'anvil')) await foreign(name, kind, nodes.rootlight);
} finally {
  for (const { client, upstream } of subjects) {
    await client.close();
    upstream.close();
  }
  for (const node of Object.values(nodes)) await node.stop();
}
