// The light client's module with transports, options and calls that are wrong. Its upstream is a development chain in the same process.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as index from '../index.js';
import * as dev from '../dev.js';
import { transportTo } from './lib/chain-transport.mjs';
import { LIMIT, pause, until } from './lib/wait.mjs';

const { createProvider } = index;
const { createDevChain } = dev;

/** Number of blocks, more than one batch can request. */
const BLOCKS = 26;

/** Data of a transaction that logs 42 under topic 7. */
const LOGS = '0x602a600052600760206000a1';

let chain;
let running;
let options;

before(async () => {
  // There is no connection that keeps the process running.
  running = setInterval(() => {}, 1_000);
  chain = await createDevChain({ blockTime: 'manual' });
  const [from] = await chain.request({ method: 'eth_accounts' });
  for (let block = 0; block < BLOCKS; block += 1) {
    await chain.request({ method: 'eth_sendTransaction', params: [{ from, data: LOGS, gas: '0x30d40' }] });
    await chain.request({ method: 'evm_mine' });
  }
  const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  options = { network: 'regtest', checkpoint: { number: 0, hash }, upstream: transportTo(chain), pollSeconds: 0.1, store: null };
});

after(() => {
  chain.close();
  clearInterval(running);
});

/** Waits until the light client has the newest block. */
async function hasHead(light) {
  const wanted = await chain.request({ method: 'eth_blockNumber' });
  await until(async () => (await light.request({ method: 'eth_blockNumber' })) === wanted, `block ${wanted}`);
}

/** Mines a block and waits until the light client has it. */
async function follows(light) {
  await chain.request({ method: 'evm_mine' });
  await hasHead(light);
}

/** A transport that counts its requests, and the exchanges in progress. */
function counting(transport = transportTo(chain)) {
  const seen = { ids: [], sizes: [], asked: 0, now: 0, most: 0 };
  const counted = async (body) => {
    const calls = [JSON.parse(body)].flat();
    seen.ids.push(...calls.map(({ id }) => id));
    seen.sizes.push(calls.length);
    seen.asked += 1;
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
    await pause(1);
    return transport(body).finally(() => (seen.now -= 1));
  };
  return Object.assign(counted, { seen });
}

test('the former names of the entry points are the same functions', () => {
  assert.equal(index.connect, createProvider);
  assert.equal(dev.connect, dev.createProvider);
  assert.equal(dev.startDevChain, createDevChain);
  assert.deepEqual([createProvider, dev.createProvider, createDevChain].map((entry) => typeof entry), ['function', 'function', 'function']);
});

test('requests are sent in batches of the given size, a few at a time, with ids that are never reused', LIMIT, async () => {
  for (const [batch, largest, most] of [[0, 1, 4], [1, 1, 4], [2, 2, 4], [undefined, 50, 2]]) {
    const upstream = counting();
    const light = await createProvider({ ...options, upstream, batch, pollSeconds: 3_600 });
    const filter = { fromBlock: '0x0', toBlock: 'latest', topics: [`0x${'7'.padStart(64, '0')}`] };
    const logs = await light.request({ method: 'eth_getLogs', params: [filter] });
    assert.equal(logs.length, BLOCKS);
    assert.deepEqual([Math.max(...upstream.seen.sizes), upstream.seen.most], [largest, most]);
    assert.equal(new Set(upstream.seen.ids).size, upstream.seen.ids.length);
    light.close();
  }
});

test('the failure of a transport is reported in a short text', LIMIT, async () => {
  const long = `a\u0007b${'c'.repeat(300)}`;
  for (const [upstream, reason] of [
    [async () => '{}', /the transport did not return a Uint8Array/],
    [() => { throw new Error('at once'); }, /at once/],
    [async () => Promise.reject('a text'), /a text/],
    [async () => Promise.reject(undefined), /unknown failure/],
    [async () => Promise.reject(new Error(long)), /abc{198}(?!c)/],
    [async () => Promise.reject(Object.assign(new Error('busy'), { retryAfter: null })), /the upstream asks for a pause/],
  ]) {
    const error = await createProvider({ ...options, upstream }).catch((reason) => reason);
    assert.equal(error.code, 4900);
    assert.match(error.message, reason);
  }
});

/** Stops the monotonic clock: `forward(milliseconds)` advances it, and `looked()` resolves when the loops of clients have looked at it again. */
function clock(t) {
  let time = performance.now();
  const { mock } = t.mock.method(performance, 'now', () => time);
  return {
    forward: (milliseconds) => (time += milliseconds),
    looked() {
      const before = mock.callCount();
      return until(() => mock.callCount() >= before + 4, 'looks at the clock');
    },
  };
}

test('a client that is closed, or failed to connect, sends no more requests', LIMIT, async (t) => {
  const { forward } = clock(t);
  const upstream = counting();
  const light = await createProvider({ ...options, upstream });
  light.close();
  const error = await light.request({ method: 'eth_blockNumber' }).catch((reason) => reason);
  assert.equal(error.code, 4900);
  const failing = counting(async () => Promise.reject(new Error('down')));
  await assert.rejects(createProvider({ ...options, upstream: failing }), /down/);
  const asked = [upstream, failing].map(({ seen }) => seen.asked);
  // All rests are over, and no loop sleeps for longer than a second.
  forward(3_600_000);
  await pause(1_200);
  assert.deepEqual([upstream, failing].map(({ seen }) => seen.asked), asked);
});

test('a transaction that is not mined is sent again', LIMIT, async (t) => {
  const { forward } = clock(t);
  const [from, to] = await chain.request({ method: 'eth_accounts' });
  const signed = await chain.request({ method: 'eth_signTransaction', params: [{ from, to, gas: '0x5208' }] });
  const sent = [];
  const ask = transportTo(chain);
  const upstream = async (body) => {
    const [{ method, params }] = [JSON.parse(body)].flat();
    if (method === 'eth_sendRawTransaction') sent.push(params[0]);
    return ask(body);
  };
  const light = await createProvider({ ...options, upstream });
  const raw = signed.raw ?? signed;
  await light.request({ method: 'eth_sendRawTransaction', params: [raw] });
  // The first check finds the transaction new; the second one sends it again.
  await until(() => sent.length > 1 || (forward(500), false), 'the transaction is sent again');
  assert.deepEqual(sent, [raw, raw]);
  light.close();
});

test('wrong options are named', LIMIT, async () => {
  for (const [wrong, named] of [
    [{ unknown: 1 }, /^options: unknown field/],
    [{ network: 'nonet' }, /^network: 'nonet' is not known: give mainnet, testnet, .* or regtest$/],
    [{ network: undefined }, /^network: '' is not known: give mainnet, /],
    [{ checkpoint: { number: 0, hash: '0x1' } }, /^checkpoint\.hash: /],
    [{ checkpoint: { ...options.checkpoint, totalDifficulty: 'much' } }, /^checkpoint\.totalDifficulty: /],
    [{ checkpoint: { ...options.checkpoint, unknown: 1 } }, /^checkpoint: unknown field/],
    [{ pollSeconds: -1 }, /^options: /],
    [{ upstream: [] }, /^upstreams: at least one is needed/],
    [{ network: 'regtest', checkpoint: undefined, upstream: undefined }, /^upstreams: at least one is needed/],
    [{ unproven: 'quorum:2' }, /^unproven: quorum:2 needs 2 upstreams, 1 given/],
  ]) {
    const error = await createProvider({ ...options, ...wrong }).catch((reason) => reason);
    assert.equal(error.code, -32600, error.message);
    assert.match(error.message, named);
  }
});

test('without a checkpoint a client starts by window, from the newest built-in block, or from genesis', LIMIT, async () => {
  const upstream = async () => Promise.reject(new Error('down'));
  const [anyBlock, builtIn] = [/^upstream 0: block 0: no response/, /^upstream 0: block [1-9]\d{6}: no response/];
  for (const [options, first] of [
    // No block is asked for before a height is known.
    [{ network: 'mainnet' }, anyBlock],
    [{ network: 'mainnet', minWork: 0 }, builtIn],
    [{ network: 'mainnet', checkpoint: 'built-in' }, builtIn],
    [{ network: 'testnet' }, builtIn],
    [{ network: 'devnet' }, anyBlock],
  ]) {
    await assert.rejects(createProvider({ ...options, upstream, store: null }), { message: first }, JSON.stringify(options));
  }
});

test('invalid calls are refused', async () => {
  const light = await createProvider(options);
  for (const provider of [light, chain]) {
    for (const call of [undefined, null, 'eth_chainId', {}, { method: 'eth_chainId', params: [1n] }, { method: 1 }]) {
      const error = await provider.request(call).catch((reason) => reason);
      assert.equal(error.code, -32600, `${call}: ${error.message}`);
      assert.ok(!('data' in error), 'no data member without data');
    }
    const hidden = { get method() { throw new RangeError('mine'); } };
    await assert.rejects(provider.request(hidden), RangeError);
    await assert.rejects(provider.requestWithLevel(hidden), RangeError);
  }
  light.close();
});

test('progress is reported until the head is reached, and a listener that throws has no effect', async (t) => {
  t.mock.method(console, 'error', () => {});
  let told = 0;
  const onProgress = () => {
    told += 1;
    throw new Error('mine');
  };
  const light = await createProvider({ ...options, onProgress });
  const before = told;
  assert.ok(before > 0);
  await follows(light);
  assert.equal(told, before);
  light.close();
});

test('an upstream that asks for a pause gets no requests during it', async () => {
  const busy = counting(async () => Promise.reject(Object.assign(new Error('busy'), { retryAfter: 3_600 })));
  const light = await createProvider({ ...options, upstream: [busy, options.upstream] });
  for (let block = 0; block < 3; block += 1) await follows(light);
  assert.equal(busy.seen.asked, 1);
  light.close();
});

test('a step that computes for too long ends', async (t) => {
  const light = await createProvider(options);
  let now = performance.now();
  t.mock.method(performance, 'now', () => (now += 5_001));
  const endless = { data: '0x5b600056', gas: '0xfffffff' };
  for (const provider of [light, chain]) {
    const error = await provider.request({ method: 'eth_call', params: [endless, 'latest'] }).catch((reason) => reason);
    assert.equal(error.code, -32011, error.message);
  }
  light.close();
});

test('pauses between checks for blocks are not shorter than allowed', LIMIT, async (t) => {
  const { forward, looked } = clock(t);
  const upstream = counting();
  const light = await createProvider({ ...options, upstream, pollSeconds: 0.001 });
  /** Resolves when the client has nothing to ask at this time. */
  const idle = async () => {
    for (let asked; asked !== upstream.seen.asked; await looked()) asked = upstream.seen.asked;
  };
  /** Advances the clock and returns whether the client checks then. */
  const checks = async (milliseconds) => {
    const { asked } = upstream.seen;
    forward(milliseconds);
    await looked();
    await idle();
    return upstream.seen.asked > asked;
  };
  await idle();
  // The pause is a tenth of a second, not a thousandth.
  for (let round = 0; round < 2; round += 1) assert.deepEqual([await checks(99), await checks(1)], [false, true]);
  light.close();
});

test('upstreams that failed are asked again as soon as the network is back', LIMIT, async (t) => {
  const { forward } = clock(t);
  const network = new EventTarget();
  for (const name of ['addEventListener', 'removeEventListener']) {
    globalThis[name] = network[name].bind(network);
    t.after(() => delete globalThis[name]);
  }
  let down = false;
  const upstream = counting(async (body) => (down ? Promise.reject(new Error('no network')) : transportTo(chain)(body)));
  const light = await createProvider({ ...options, upstreams: upstream });
  down = true;
  const resting = async () => (await light.request({ method: 'rootlight_upstreams' }))[0].restingMillis;
  // Each failure doubles the time for which the upstream is left alone, up to 30 s.
  await until(async () => {
    if ((await resting()) > 15_000) return true;
    forward(1_000);
    return false;
  }, 'an upstream that is left alone for a quarter of a minute', { every: 50 });
  down = false;
  const { asked } = upstream.seen;
  await pause(1_500);
  assert.equal(upstream.seen.asked, asked);
  await chain.request({ method: 'evm_mine' });
  network.dispatchEvent(new Event('online'));
  await hasHead(light);
  light.close();
});
