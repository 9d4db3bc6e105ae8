// What `createProvider` makes of its options, with a module in the test's hands.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { connectWith } from '../connect.js';
import { FakeSocket } from './lib/fake-socket.mjs';
import { pause, until } from './lib/wait.mjs';

beforeEach(() => {
  FakeSocket.made.splice(0);
  globalThis.WebSocket = FakeSocket;
});

const OPTIONS = { network: 'devnet', upstreams: async () => new Uint8Array(0) };

/** Connects to a module that does `work` first; returns the provider, and the calls and options that the module got. */
async function start({ behind = [], ...options } = {}, work = async () => {}) {
  const seen = { asked: [], hints: [], woken: 0, closed: 0, restored: [], proven: [], again: [] };
  const load = async (source) => {
    await new Promise((resolve) => setImmediate(resolve));
    seen.source = source;
  };
  class Client {
    constructor(given, exchanges, storePages, progress) {
      assert.ok('source' in seen, 'loaded before use');
      Object.assign(seen, { settings: JSON.parse(JSON.stringify(given)), exchanges, storePages, progress });
    }
    isByWindow() {
      return seen.settings.checkpoint === 'window';
    }
    restoreBitcoin(chain) {
      seen.bitcoinChain = chain;
    }
    restoring(pages, record) {
      seen.record = record;
      this.left = Array.from({ length: pages }, (_, index) => index);
    }
    wantedPage() {
      return this.left[0];
    }
    restore(page) {
      seen.restored.push(page);
      return page[0] !== 0 && this.left.shift() !== undefined;
    }
    restored() {
      this.left = [...behind];
    }
    prove(page) {
      seen.proven.push(page?.[0]);
      return this.left.shift() !== undefined && page !== undefined;
    }
    start() {
      return work(seen);
    }
    async request(text) {
      const { method } = JSON.parse(text);
      seen.asked.push(method);
      const result = { eth_subscribe: '0x1', eth_blockNumber: '0x5', rootlight_verification: seen.evidence }[method] ?? seen.news ?? [];
      return JSON.stringify({ result, level: seen.level, start: seen.start, bitcoin: seen.bitcoin });
    }
    hint(index) {
      seen.hints.push(index);
    }
    wake() {
      seen.woken += 1;
    }
    keepAgain(page) {
      seen.again.push(page);
    }
    close() {
      seen.closed += 1;
    }
  }
  const instantiate = () => ({ init: async () => {}, Client, methods: () => '{}' });
  return { seen, provider: await connectWith(load, instantiate, { ...OPTIONS, ...options }) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('the module gets its options in its own units', async () => {
  const given = { minDepth: 2, unproven: 'trust', checkpoint: { number: 1, hash: '0x1' } };
  const { seen } = await start({ ...given, pollSeconds: 1.5, module: 'bytes', store: null, onProgress: () => {} });
  assert.equal(seen.source, 'bytes');
  assert.deepEqual(seen.settings, { network: 'devnet', ...given, names: ['upstream 0'], pollMillis: 1_500 });
  assert.deepEqual((await start()).seen.settings, { network: 'devnet', names: ['upstream 0'] });
});

test('upstreams are named by their origin without keys, and reached by the transport of their scheme', async (t) => {
  globalThis.location = { href: 'https://site.example/page' };
  t.after(() => delete globalThis.location);
  const upstreams = ['https://user:word@a.example/key', new URL('wss://b.example/key'), OPTIONS.upstreams, '/rpc', 'ws://c.example'];
  const fetched = t.mock.method(globalThis, 'fetch', async () => new Response('{}'));
  const { seen } = await start({ upstreams });
  assert.deepEqual(seen.settings.names, ['https://a.example', 'wss://b.example', 'upstream 2', 'https://site.example', 'ws://c.example']);
  for (const exchange of seen.exchanges) void exchange('{"id":1}', false);
  await settled();
  assert.deepEqual(FakeSocket.made.map(({ url }) => url), ['wss://b.example/key', 'ws://c.example/']);
  assert.deepEqual(fetched.mock.calls.map(({ arguments: [url, { headers, body }] }) => [url, headers.authorization, body]), [
    ['https://a.example/key', `Basic ${btoa('user:word')}`, '{"id":1}'],
    ['https://site.example/rpc', undefined, '{"id":1}'],
  ]);
  await assert.rejects(start({ upstreams: 'https://' }), TypeError);
});

test('`upstream` is the former name of `upstreams`; one is needed', async () => {
  assert.deepEqual((await start({ upstreams: undefined, upstream: 'https://a.example' })).seen.settings.names, ['https://a.example']);
  for (const upstreams of [undefined, []]) await assert.rejects(start({ upstreams }), { code: -32600, message: 'upstreams: at least one is needed' });
});

test('connections of the package end with the provider, those of the caller do not', async () => {
  let ended = 0;
  const mine = Object.assign(async () => new Uint8Array(0), { close: () => (ended += 1) });
  const upstreams = [mine, 'wss://node.example', 'https://node.example'];
  const ask = async ({ exchanges }) => {
    void exchanges[1]('{"id":1}', false);
    await settled();
  };
  const { provider, seen } = await start({ upstreams }, ask);
  assert.equal(FakeSocket.last.readyState, FakeSocket.CONNECTING);
  let gone;
  provider.on('disconnect', ({ code }) => {
    gone = code;
  });
  provider.close();
  assert.equal(gone, 4900);
  assert.equal(seen.closed, 1);
  assert.equal(FakeSocket.last.readyState, FakeSocket.CLOSED);
  const failing = start({ upstreams }, async (given) => {
    await ask(given);
    throw new Error('no head');
  });
  await assert.rejects(failing, /no head/);
  assert.deepEqual(FakeSocket.made.map(({ readyState }) => readyState), [FakeSocket.CLOSED, FakeSocket.CLOSED]);
  assert.equal(ended, 0);
  assert.ok(Object.isFrozen(provider));
});

test('an announced block is a hint to poll the upstream that announced it', async () => {
  const listeners = [];
  const announcing = Object.assign(async () => new Uint8Array(0), { heads: (listener) => listeners.push(listener) });
  const { seen } = await start({ upstreams: [OPTIONS.upstreams, announcing, 'http://node.example', announcing] });
  for (const listener of listeners) listener();
  assert.deepEqual(seen.hints, [1, 3]);
});

test('pages of the module are stored and events emitted; missing events are polled every ten seconds', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const values = new Map();
  const store = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  const page = Uint8Array.of(1);
  const first = await start({ store }, async ({ storePages }) => storePages(0, [page]));
  assert.deepEqual(first.seen.restored, []);
  await settled();
  first.provider.close();
  const { seen, provider } = await start({ store });
  assert.deepEqual(seen.restored, [page]);
  await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  const looks = () => seen.asked.filter((method) => method === 'eth_getFilterChanges').length;
  seen.storePages(1, [page]);
  await settled();
  assert.equal(looks(), 1);
  t.mock.timers.tick(9_999);
  assert.equal(looks(), 1);
  t.mock.timers.tick(1);
  assert.equal(looks(), 2);
  provider.close();
});

test('pages of a window are stored with its record, in places that later pages take again', async () => {
  const values = new Map();
  const storage = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  const [page, record] = [(byte) => Uint8Array.of(byte), Uint8Array.of(9, 8, 7)];
  const options = { storage, checkpoint: 'window' };
  const first = await start(options, async ({ storePages }) => storePages(150_000, [page(1), page(2)], record));
  assert.equal(first.seen.record, undefined);
  first.seen.storePages(0, []);
  await settled();
  first.provider.close();
  const name = 'rootlight-v1-devnet-window';
  assert.deepEqual([...values.keys()], [`${name}/113`, `${name}/114`, `${name}/0`]);
  const { seen, provider } = await start(options);
  assert.deepEqual(seen.record, record);
  seen.storePages(150_128, [page(3)], record);
  await settled();
  assert.deepEqual([values.get(`${name}/113`), values.size], [page(3), 3]);
  provider.close();
});

test('Bitcoin\'s chain is stored beside a window, stays until another one comes, and is passed on if it may be one', async () => {
  const values = new Map();
  const storage = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  const [page, record] = [Uint8Array.of(1), Uint8Array.of(9, 8, 7)];
  const visit = async (...chain) => {
    const { seen, provider } = await start({ storage, checkpoint: 'window' }, async ({ storePages }) => storePages(150_000, [page], record, ...chain));
    await settled();
    provider.close();
    return seen.bitcoinChain;
  };
  const chain = Uint8Array.of(1, 2, 3);
  assert.equal(await visit(chain), undefined);
  const place = 'rootlight-v1-devnet-window/129';
  assert.deepEqual([values.get(place), values.size], [chain, 3]);
  assert.deepEqual([await visit(), await visit(page), await visit()], [chain, chain, page]);
  for (const other of ['no bytes', new Uint8Array(2 ** 20 + 1)]) {
    values.set(place, other);
    assert.equal(await visit(), undefined);
  }
});

test('a start by work does not use a store; events are emitted with the start', async () => {
  const touched = [];
  const store = { get: (key) => void touched.push(key), put: (key) => void touched.push(key) };
  const { seen, provider } = await start({ store, checkpoint: 'work' });
  assert.equal(seen.settings.checkpoint, 'work');
  const told = [];
  provider.on('message', ({ data }) => told.push(data));
  const subscription = await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  Object.assign(seen, { news: ['0x7'], start: 'work' });
  seen.storePages(0, []);
  await settled();
  assert.deepEqual(told, [{ subscription, result: '0x7', start: 'work' }]);
  assert.deepEqual(await provider.requestWithLevel({ method: 'eth_blockNumber' }), { result: '0x5', start: 'work' });
  seen.bitcoin = 'weak';
  assert.deepEqual(await provider.requestWithLevel({ method: 'eth_blockNumber' }), { result: '0x5', start: 'work', bitcoin: 'weak' });
  assert.deepEqual(touched, []);
  provider.close();
});

test('the event of an answer has what Bitcoin shows above its block, and the marks of the answer', async () => {
  const { seen, provider } = await start();
  const tags = { own: 18, kin: 17, foreign: 0, ahead: 0, none: 37, withheld: 0 };
  const bitcoin = { verdict: 'weak', reason: 'words', blocksAbove: 3, newestHeight: 900_000, newestAge: 60, tags };
  const evidence = { blockNumber: '0x5', blockHash: '0x1', level: 'verified', depth: '0x0', start: 'window', bitcoin };
  Object.assign(seen, { evidence, start: 'window', bitcoin: 'weak' });
  const told = [];
  provider.on('verification', (event) => told.push(event));
  await provider.request({ method: 'eth_blockNumber' });
  await until(() => told.length > 0, 'the event');
  assert.deepEqual(told, [{ method: 'eth_blockNumber', level: 'verified', depth: 0, evidence, start: 'window', bitcoin: 'weak', caught: [] }]);
  provider.close();
});

test('headers of a network given as an object are stored under its name', async () => {
  const keys = new Set();
  const store = { get: (key) => void keys.add(key), put: (key) => void keys.add(key) };
  const network = { name: 'mine', base: 'regtest' };
  const { seen, provider } = await start({ store, network, checkpoint: { number: 1, hash: '0x1' } });
  assert.deepEqual(JSON.parse(seen.settings.network), network);
  provider.close();
  assert.deepEqual([...keys], ['rootlight-v1-mine-0x1/0']);
});

test('events are emitted without a store', async () => {
  const { seen, provider } = await start({ store: null });
  await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  seen.asked.length = 0;
  seen.storePages(0, [new Uint8Array(1)]);
  assert.deepEqual(seen.asked, ['eth_blockNumber', 'eth_getFilterChanges']);
  provider.close();
});

test('progress is reported to a listener', async () => {
  assert.equal((await start()).seen.progress, undefined);
  const told = [];
  const { seen } = await start({ onProgress: (progress) => told.push(progress) });
  // Nothing is known yet.
  seen.progress(0, 0, 0, 0, null);
  seen.progress(1, 2, 3, 4, 5);
  seen.progress(1, 2, 3, 0, null);
  const way = { startingBlock: 1, currentBlock: 2, highestBlock: 3 };
  assert.deepEqual(told, [
    { ...way, headersPerSecond: 4, secondsLeft: 5 },
    { ...way, headersPerSecond: 0, secondsLeft: undefined },
  ]);
});

test('a result that is less than proven has a level', async () => {
  const { seen, provider } = await start();
  assert.deepEqual(await provider.requestWithLevel({ method: 'eth_blockNumber' }), { result: '0x5' });
  seen.level = 'unproven-absence';
  assert.deepEqual(await provider.requestWithLevel({ method: 'eth_blockNumber' }), { result: '0x5', level: 'unproven-absence' });
  assert.equal(await provider.request({ method: 'eth_blockNumber' }), '0x5');
  const told = [];
  provider.on('message', ({ data }) => told.push(data));
  const { result: subscription } = await provider.requestWithLevel({ method: 'eth_subscribe', params: ['newPendingTransactions'] });
  seen.news = ['0x7'];
  seen.storePages(0, []);
  await settled();
  assert.deepEqual(told, [{ subscription, result: '0x7', level: 'unproven-absence' }]);
  provider.close();
});

test('the remaining stored headers are proven in the background, with the pages that the module wants', async () => {
  const values = new Map([1, 2, 3].map((byte, index) => [`rootlight-v1-devnet-newest/${index}`, Uint8Array.of(byte)]));
  const store = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  // The last page is missing, which ends this.
  const { seen, provider } = await start({ store, behind: [2, 0, 9, 1] });
  await until(() => seen.proven.length >= 3, 'three pages');
  await pause(100);
  assert.deepEqual(seen.proven, [3, 1, undefined]);
  provider.close();
});

test('stored pages are used up to the first invalid one', async () => {
  const values = new Map([1, 2, 0, 3].map((byte, index) => [`rootlight-v1-devnet-newest/${index}`, Uint8Array.of(byte)]));
  const store = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  const { seen, provider } = await start({ store });
  assert.deepEqual(seen.restored.map(([byte]) => byte), [1, 2, 0, 1, 2]);
  await settled();
  assert.equal(values.get('rootlight-v1-devnet-newest/2').length, 0);
  provider.close();
});

test('a client that becomes the writer gets the pages again that it could not write', async () => {
  const values = new Map();
  const store = { get: (key) => values.get(key), put: (key, value) => void values.set(key, value) };
  const first = await start({ store });
  const second = await start({ store });
  first.seen.storePages(0, [Uint8Array.of(1), Uint8Array.of(2)]);
  second.seen.storePages(1, [Uint8Array.of(3)]);
  second.seen.storePages(2, [Uint8Array.of(4)]);
  await settled();
  assert.deepEqual(values.get('rootlight-v1-devnet-newest/1'), Uint8Array.of(2));
  first.provider.close();
  await settled();
  assert.deepEqual([first.seen.again, second.seen.again], [[], [1]]);
  second.seen.storePages(1, [Uint8Array.of(3), Uint8Array.of(4)]);
  await settled();
  assert.deepEqual(values.get('rootlight-v1-devnet-newest/2'), Uint8Array.of(4));
  second.provider.close();
});

test('a failing store is reported once and has no other effect', async () => {
  const failing = async () => Promise.reject(new Error('no space'));
  const told = [];
  const { seen, provider } = await start({ store: { get: failing, put: failing }, onStoreError: ({ message }) => told.push(message) });
  seen.storePages(0, [Uint8Array.of(1)]);
  await settled();
  assert.deepEqual(told, ['verified headers are not kept: no space']);
  provider.close();
});

test('upstreams are asked again when the network is back, until the provider is closed', async (t) => {
  const network = new EventTarget();
  for (const name of ['addEventListener', 'removeEventListener']) {
    globalThis[name] = network[name].bind(network);
    t.after(() => delete globalThis[name]);
  }
  const { seen, provider } = await start();
  network.dispatchEvent(new Event('online'));
  assert.equal(seen.woken, 1);
  provider.close();
  network.dispatchEvent(new Event('online'));
  assert.equal(seen.woken, 1);
});
