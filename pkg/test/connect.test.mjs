// What `connect` makes of its options, with a module in the test's hands.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { connectWith } from '../connect.js';
import { FakeSocket } from './lib/fake-socket.mjs';

beforeEach(() => {
  FakeSocket.made.splice(0);
  globalThis.WebSocket = FakeSocket;
});

const OPTIONS = { network: 'regtest', upstream: async () => new Uint8Array(0) };

/** Connects to a module that does `work` first; returns the provider and what the module was given and asked. */
async function start(options, work = async () => {}) {
  const seen = { asked: [], hints: [], closed: 0 };
  const load = async (source) => {
    await new Promise((resolve) => setImmediate(resolve));
    seen.source = source;
  };
  const module = {
    request: async (call) => {
      seen.asked.push(call.method);
      return call.method === 'eth_subscribe' ? '0x1' : [];
    },
    hint: (index) => seen.hints.push(index),
    close: () => (seen.closed += 1),
  };
  const connect = async (text, transports, kept, keep, progress) => {
    assert.ok('source' in seen, 'loaded before it is used');
    Object.assign(seen, { settings: JSON.parse(text), transports, kept, keep, progress });
    await work(seen);
    return module;
  };
  return { seen, provider: await connectWith(load, () => ({ connect }), { ...OPTIONS, ...options }) };
}

test('the module is told what concerns it, in its own units', async () => {
  const given = { minDepth: 2, unproven: 'trust', checkpoint: { number: 1, hash: '0x1' } };
  const { seen } = await start({ ...given, pollSeconds: 1.5, module: 'bytes', store: null, onProgress: () => {} });
  assert.equal(seen.source, 'bytes');
  assert.deepEqual(seen.settings, { network: 'regtest', ...given, names: ['upstream 0'], pollMillis: 1_500 });
  assert.deepEqual((await start()).seen.settings, { network: 'regtest', names: ['upstream 0'] });
});

test('upstreams are named by their origin, which holds no key, and reached by their scheme', async (t) => {
  globalThis.location = { href: 'https://site.example/page' };
  t.after(() => delete globalThis.location);
  const fetched = t.mock.method(globalThis, 'fetch', async () => new Response('{}'));
  const upstream = ['https://user:word@a.example/key', new URL('wss://b.example/key'), OPTIONS.upstream, '/rpc', 'ws://c.example'];
  const { seen } = await start({ upstream });
  assert.deepEqual(seen.settings.names, ['https://a.example', 'wss://b.example', 'upstream 2', 'https://site.example', 'ws://c.example']);
  for (const transport of seen.transports) void transport('{"id":1}');
  assert.deepEqual(FakeSocket.made.map(({ url }) => url), ['wss://b.example/key', 'ws://c.example/']);
  assert.deepEqual(fetched.mock.calls.map(({ arguments: [url] }) => String(url)), [upstream[0], 'https://site.example/rpc']);
  assert.equal(seen.transports[2], OPTIONS.upstream);
  await assert.rejects(start({ upstream: 'https://' }), TypeError);
});

test('connections that were made here end with the provider, those of the caller do not', async () => {
  let ended = 0;
  const mine = Object.assign(async () => new Uint8Array(0), { close: () => (ended += 1) });
  const upstream = [mine, 'wss://node.example', 'https://node.example'];
  const ask = async ({ transports }) => void transports[1]('{"id":1}').catch(() => {});
  const { provider, seen } = await start({ upstream }, ask);
  assert.equal(FakeSocket.last.readyState, FakeSocket.CONNECTING);
  let gone;
  provider.on('disconnect', ({ code }) => {
    gone = code;
  });
  provider.close();
  assert.equal(gone, 4900);
  assert.equal(seen.closed, 1);
  assert.equal(FakeSocket.last.readyState, FakeSocket.CLOSED);
  const failing = start({ upstream }, async (given) => {
    await ask(given);
    throw new Error('no head');
  });
  await assert.rejects(failing, /no head/);
  assert.deepEqual(FakeSocket.made.map(({ readyState }) => readyState), [FakeSocket.CLOSED, FakeSocket.CLOSED]);
  assert.equal(ended, 0);
  assert.ok(Object.isFrozen(provider));
});

test('an announced block is a hint about the upstream that announced it', async () => {
  const listeners = [];
  const announcing = Object.assign(async () => new Uint8Array(0), { heads: (listener) => listeners.push(listener) });
  const { seen } = await start({ upstream: [OPTIONS.upstream, announcing, 'http://node.example', announcing] });
  for (const listener of listeners) listener();
  assert.deepEqual(seen.hints, [1, 3]);
});

test('what the module hands out is kept, and told of; what could not be told is looked for every ten seconds', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const values = new Map();
  const store = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  const page = Uint8Array.of(1);
  const first = await start({ store }, async ({ keep }) => keep(0, [page]));
  assert.deepEqual(first.seen.kept, []);
  await new Promise((resolve) => setImmediate(resolve));
  const { seen, provider } = await start({ store });
  assert.deepEqual(seen.kept, [page]);
  await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  const looks = () => seen.asked.filter((method) => method === 'eth_getFilterChanges').length;
  seen.keep(1, [page]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(looks(), 1);
  t.mock.timers.tick(9_999);
  assert.equal(looks(), 1);
  t.mock.timers.tick(1);
  assert.equal(looks(), 2);
  provider.close();
});

test('without a store nothing is kept, events are told nevertheless', async () => {
  const { seen, provider } = await start({ store: null });
  assert.equal(seen.kept, undefined);
  await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  seen.keep(0, [new Uint8Array(1)]);
  assert.deepEqual(seen.asked, ['eth_subscribe', 'eth_getFilterChanges']);
  provider.close();
});

test('progress is told where somebody asks for it', async () => {
  assert.equal((await start()).seen.progress, undefined);
  const told = [];
  const { seen } = await start({ onProgress: (progress) => told.push(progress) });
  seen.progress(1, 2, 3, 4, 5);
  seen.progress(1, 2, 3, 0, null);
  const way = { startingBlock: 1, currentBlock: 2, highestBlock: 3 };
  assert.deepEqual(told, [
    { ...way, headersPerSecond: 4, secondsLeft: 5 },
    { ...way, headersPerSecond: 0, secondsLeft: undefined },
  ]);
});
