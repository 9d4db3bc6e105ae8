// The light client over loopback: a day of headers from a checkpoint to a proven head with 30 ms of added
// latency, warm starts, and round trips and bytes of proven calls.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. [ROOTLIGHT_HEADERS=mainnet_4479841_iris_run1200.json] node light.mjs
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection, Node, call, median } from './node.mjs';
import { ask, proxy, recordedHeaders } from './proxy.mjs';
import { balanceOf, setup, stranger, transfer, wallets } from './wallets.mjs';

/** Blocks of a day, one every 30 seconds. */
const DAY = 2_880;
/** Latency that the proxy adds, in milliseconds. */
const LATENCY = 30;
const ROUNDS = 5;
/** Transfers of the chain, each to another holder, and calls that read these holders' balances. */
const CALLS = 300;
/** Ports of the development chain and of the light client. */
const [DEV, LIGHT] = [14_451, 14_452];

/** Methods that a light client follows the chain with; all others serve requests. */
const FOLLOWING = ['eth_blockNumber', 'rootlight_getHeaders', 'eth_getBlockByNumber', 'eth_chainId', 'net_version'];
const isOurs = (method) => method.startsWith('rootlight_');

const light = (network, checkpoint, upstream, ...more) =>
  Node.start(
    [process.env.ROOTLIGHT, 'light', '--network', network, '--checkpoint', checkpoint, '--upstream', upstream, '--http-port', `${LIGHT}`, '--max-age', '0', '--silent', ...more],
    LIGHT,
  );

async function devChain() {
  const node = await Node.start(
    [process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', `${DEV}`],
    DEV,
  );
  for (const transaction of await setup()) await node.connection.call('eth_sendRawTransaction', transaction);
  await node.connection.call('evm_mine');
  for (let i = 0; i < CALLS; i += 10) {
    for (let k = 0; k < 10; k++) await node.connection.call('eth_sendRawTransaction', await transfer(k, stranger(i + k), 1n));
    await node.connection.call('evm_mine');
  }
  const height = Number(await node.connection.call('eth_blockNumber'));
  await node.connection.call('evm_mine', { blocks: DAY - height });
  return node;
}

/** Repeats the same HTTP requests without processing the responses, with the same number in flight. */
async function bare(upstream, seen, atOnce) {
  const [send, queue, began] = [ask(upstream.port), [...seen], performance.now()];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await send(next.body);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return performance.now() - began;
}

async function head(node, number) {
  for (;;) {
    if (Number(await node.connection.call('eth_blockNumber')) >= number) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Measures synchronization of `count` headers from the checkpoint to the block `last`, through a proxy with latency. */
async function synchronize(name, answer, network, checkpoint, last, count, hidden) {
  const [walls, ratios] = [[], []];
  let bytes;
  let exchanges;
  for (let round = 0; round < ROUNDS; round++) {
    const upstream = await proxy(answer, { latency: LATENCY, hidden });
    const began = performance.now();
    const node = await light(network, checkpoint, upstream.url);
    await head(node, last);
    const wall = performance.now() - began;
    const seen = [...upstream.seen];
    await node.stop();
    const carriers = seen.filter(({ methods }) => methods.includes('rootlight_getHeaders') || methods.includes('eth_getBlockByNumber'));
    bytes = carriers.reduce((sum, exchange) => sum + exchange.bytes, 0) / count;
    exchanges = seen.length;
    walls.push(wall);
    ratios.push(wall / (await bare(upstream, seen, upstream.most)));
    upstream.close();
  }
  console.log(
    `${name}: ${count} headers in ${median(walls).toFixed(0)} ms, ${exchanges} HTTP requests, ${bytes.toFixed(0)} bytes per header; ` +
      `${median(ratios).toFixed(2)} times the same requests alone (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
  );
}

/** Measures from process start to the first proven answer, without latency: with an empty folder, then with the stored headers. */
async function starts(name, answer, network, checkpoint, last) {
  const [cold, warm] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const folder = mkdtempSync(join(tmpdir(), 'light-'));
    const upstream = await proxy(answer);
    for (const times of [cold, warm]) {
      const began = performance.now();
      const node = await light(network, checkpoint, upstream.url, '--data-dir', folder);
      await head(node, last);
      times.push(performance.now() - began);
      // Verified headers are written within a second.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await node.stop();
    }
    upstream.close();
    rmSync(folder, { recursive: true });
  }
  console.log(`${name}: first proven answer after ${median(cold).toFixed(0)} ms, with --data-dir again after ${median(warm).toFixed(0)} ms (at most ${Math.max(...warm).toFixed(0)})`);
}

/** HTTP requests, calls in them and bytes of responses that served requests, not the chain's head. */
const needed = (upstream) => {
  const asked = upstream.seen.filter(({ methods }) => methods.some((method) => !FOLLOWING.includes(method)));
  return { exchanges: asked.length, calls: asked.flatMap(({ methods }) => methods).length, bytes: asked.reduce((sum, { bytes }) => sum + bytes, 0) };
};

async function calls(name, answer, genesis, hidden) {
  const upstream = await proxy(answer, { hidden });
  const node = await light('regtest', genesis, upstream.url);
  await head(node, DAY);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const trips = async (holder) => {
    upstream.seen.length = 0;
    await node.connection.call('eth_call', balanceOf(holder), 'latest');
    return needed(upstream).exchanges;
  };
  const first = await trips(wallets[1].address);
  const again = await trips(wallets[1].address);
  console.log(`${name}: balanceOf ${first} round trips, repeated ${again}`);
  upstream.seen.length = 0;
  const times = [];
  const began = performance.now();
  for (let i = 0; i < CALLS; i++) {
    const start = performance.now();
    const result = await node.connection.call('eth_call', balanceOf(stranger(i)), 'latest');
    if (BigInt(result) !== 1n) throw new Error(`a wrong balance: ${result}`);
    times.push(performance.now() - start);
  }
  const seconds = (performance.now() - began) / 1_000;
  const total = needed(upstream);
  const each = (count) => (count / CALLS).toFixed(2);
  console.log(
    `${name}: ${(CALLS / seconds).toFixed(0)} proven calls a second, each another holder (median ${median(times).toFixed(1)} ms), ` +
      `${each(total.exchanges)} HTTP, ${each(total.calls)} calls and ${(total.bytes / CALLS / 1_000).toFixed(1)} kB each`,
  );
  await node.stop();
  upstream.close();
}

const chain = await devChain();
try {
  const { hash } = await chain.connection.call('eth_getBlockByNumber', '0x0', false);
  const [genesis, answer] = [`0:${hash}`, ask(DEV)];
  await synchronize('development chain, binary', answer, 'regtest', genesis, DAY, DAY);
  await synchronize('development chain, JSON', answer, 'regtest', genesis, DAY, DAY, isOurs);
  await starts('development chain', answer, 'regtest', genesis, DAY);
  if (process.env.ROOTLIGHT_HEADERS) {
    const { headers, answer: recorded } = recordedHeaders(process.env.ROOTLIGHT_HEADERS);
    const [first, last] = [headers[0], headers.at(-1)];
    const checkpoint = `${first.number}:${first.hash}`;
    await synchronize('main network, binary', recorded, 'mainnet', checkpoint, last.number, headers.length - 1);
    await starts('main network', recorded, 'mainnet', checkpoint, last.number);
  }
  await calls('with a witness', answer, genesis);
  await calls('with eth_getProof only', answer, genesis, isOurs);
} finally {
  await chain.stop();
}
