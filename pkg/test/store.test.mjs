// Headers that the light client stores between two runs, in Node.js and in a real page: valid pages are used, invalid ones are ignored and replaced.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MAX_PAGE_BYTES } from '../directory.js';
import { pagesIn } from '../store.js';
import { inPage } from './lib/in-page.mjs';
import { digestOf, loaded, visit } from './lib/store-scenario.mjs';
import { recordingForTests } from './lib/recording.mjs';
import { pause } from './lib/wait.mjs';

const { node, upstream, options: common } = await recordingForTests();
const options = { ...common, pollSeconds: 3_600 };

/** The number of requests that the upstream got during some work, which must find the true head. */
async function asked(work) {
  const before = upstream.asked.count;
  assert.equal(await work(), node.head);
  return upstream.asked.count - before;
}

const mapStore = (values = new Map()) => ({ values, get: (key) => values.get(key), put: (key, value) => void values.set(key, value) });

test('with a store of get and put the next start takes few requests', async () => {
  const rootlight = await import('../index.js');
  const store = mapStore();
  const cold = await asked(() => visit(rootlight, { ...options, store }));
  const warm = await asked(() => visit(rootlight, { ...options, store }));
  assert.ok(cold > node.head && warm <= 8, `${cold} requests cold, ${warm} warm`);
});

test('damaged pages and pages of other chains are ignored and replaced', async () => {
  const rootlight = await import('../index.js');
  const store = mapStore();
  await visit(rootlight, { ...options, store });
  const good = new Map(store.values);
  const harms = [
    (page) => page.with(page.length >> 1, page[page.length >> 1] ^ 1),
    (page) => page.slice(0, page.length - 1),
    () => new Uint8Array(40),
    () => 'no bytes at all',
  ];
  for (const harm of harms) {
    for (const [key, value] of good) store.values.set(key, value.length ? harm(value) : value);
    const again = await asked(() => visit(rootlight, { ...options, store }));
    assert.ok(again > node.head, `${again} requests after ${harm}`);
    assert.deepEqual(store.values, good, `replaced after ${harm}`);
  }
});

test('a client with a failing store works as without a store', async (t) => {
  t.mock.method(console, 'warn', () => {});
  const rootlight = await import('../index.js');
  const failing = async () => Promise.reject(new Error('no space'));
  await asked(() => visit(rootlight, { ...options, store: { get: failing, put: failing } }));
});

/** Whether a promise is settled after all pending work has run. */
async function isSettled(promise) {
  let done = false;
  Promise.resolve(promise).then(() => (done = true));
  for (let turns = 0; turns < 10; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  return done;
}

const MIB = 2 ** 20;

test('a page that may not look at IndexedDB gets a client without a store, and the reason', async (t) => {
  const denied = new Error('denied');
  Object.defineProperty(globalThis, 'indexedDB', { configurable: true, get: () => { throw denied; } });
  t.after(() => delete globalThis.indexedDB);
  const told = [];
  assert.equal(pagesIn(undefined, { network: 'regtest' }, { onError: (error) => told.push(error) }), undefined);
  assert.deepEqual(told, [denied]);
});

test('synchronization waits for a slow store, which limits the bytes that wait to be written', async () => {
  const puts = [];
  const store = { get: () => Uint8Array.of(1), put: () => new Promise((resolve) => puts.push(resolve)) };
  const pages = pagesIn(store, { network: 'regtest' });
  void pages.save(0, [new Uint8Array(12 * MIB)]);
  assert.ok(await isSettled(pages.waitForSpace()));
  void pages.save(1, [new Uint8Array(12 * MIB)]);
  const more = pages.waitForSpace();
  assert.ok(!(await isSettled(more)));
  // The first page, and the end mark after it.
  for (let count = 0; count < 2; count += 1) {
    puts.shift()();
    await isSettled(more);
  }
  assert.ok(await isSettled(more));
  pages.close();
});

test('a store that writes nothing for half a minute is given up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const told = [];
  const store = { get: () => Uint8Array.of(1), put: () => new Promise(() => {}) };
  const pages = pagesIn(store, { network: 'regtest' }, { onError: ({ message }) => told.push(message) });
  void pages.save(0, [new Uint8Array(17 * MIB)]);
  const more = pages.waitForSpace();
  assert.ok(!(await isSettled(more)));
  t.mock.timers.tick(30_000);
  assert.ok(await isSettled(more));
  assert.deepEqual(told, ['verified headers are not kept: nothing was written for 30 s']);
  void pages.save(1, [new Uint8Array(17 * MIB)]);
  assert.ok(await isSettled(pages.waitForSpace()), 'synchronization no longer waits for the store');
  pages.close();
});

test('a client that is closed writes the pages that wait before another one may write', async () => {
  const store = mapStore();
  const puts = [];
  const slow = { get: store.get, put: (key, value) => new Promise((resolve) => puts.push(() => resolve(store.put(key, value)))) };
  const config = { network: 'regtest' };
  const pages = pagesIn(slow, config);
  void pages.save(0, [page(1)]);
  void pages.save(1, [page(2), page(3)]);
  const next = pagesIn(slow, config);
  // Not written: it is not this client's turn.
  await next.save(0, [page(9)]);
  let closed = false;
  const closing = pages.close().then(() => (closed = true));
  // Each save writes its pages and an end mark.
  for (const stored of [[1], [1, 2, 3]]) {
    const writes = stored.length === 1 ? 2 : 3;
    for (let count = 0; count < writes; count += 1) {
      assert.ok(!closed && puts.length === 1, `${puts.length} writes wait after ${stored}`);
      puts.shift()();
      await isSettled(closing);
    }
    assert.deepEqual((await loaded(pages)).map(([byte]) => byte), stored);
  }
  await closing;
  void next.save(0, [page(4)]);
  await isSettled(closing);
  assert.equal(puts.length, 1, 'the next client has its turn');
});

test('a closed client whose store writes nothing gives its turn to the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const store = { get: () => Uint8Array.of(1), put: () => new Promise(() => {}) };
  const config = { network: 'regtest' };
  const pages = pagesIn(store, config, { onError: () => {} });
  void pages.save(0, [page(1)]);
  const turns = [];
  const next = pagesIn(store, config, { onTurn: (first) => turns.push(first) });
  await next.save(3, [page(2)]);
  const closing = pages.close();
  assert.ok(!(await isSettled(closing)));
  assert.deepEqual(turns, []);
  t.mock.timers.tick(30_000);
  await isSettled(closing);
  assert.deepEqual(turns, [3]);
});

test('a page stores headers in IndexedDB', async () => {
  const store = mapStore();
  await visit(await import('../index.js'), { ...options, store });
  const good = await digestOf(await loaded(pagesIn(store, options)));
  const work = async (settings, change, good) => {
    const { harmDatabases, visit } = await import('/test/lib/store-scenario.mjs');
    const { areStored, released } = await import('/test/lib/stored.mjs');
    await harmDatabases(change);
    const head = await visit(await import('/index.js'), settings, () => areStored(good));
    await released();
    return head;
  };
  await inPage(async (run, reload) => {
    const visited = async (harm = null) => {
      await reload();
      return asked(() => run(work, options, harm, good));
    };
    const cold = await visited();
    const warm = await visited();
    const damaged = await visited('flip');
    const rebuilt = await visited();
    const cut = await visited('cut');
    const last = await visited();
    const counts = JSON.stringify({ cold, warm, damaged, rebuilt, cut, last });
    assert.ok(Math.min(cold, damaged, cut) > node.head && Math.max(warm, rebuilt, last) <= 8, counts);
  });
});

const page = (byte) => Uint8Array.of(byte);

test('each chain has its own pages, and saved pages replace all stored pages from their number on', async () => {
  const store = mapStore();
  const hash = `0x${'1'.repeat(64)}`;
  const chains = [{ network: 'mainnet' }, { network: 'testnet' }, { network: 'mainnet', checkpoint: { hash } }];
  for (const [place, config] of chains.entries()) {
    const pages = pagesIn(store, config);
    await pages.save(0, [page(place), page(8), page(9)]);
    await pages.save(1, [page(7)]);
  }
  for (const [place, config] of chains.entries()) assert.deepEqual(await loaded(pagesIn(store, config)), [page(place), page(7)]);
  assert.equal(pagesIn(null, chains[0]), undefined);
  // Node.js has no IndexedDB.
  assert.equal(pagesIn(undefined, chains[0]), undefined);
  // The last write of an earlier visit is missing.
  const torn = mapStore(new Map([['rootlight-v1-regtest-newest/0', page(1)]]));
  assert.deepEqual(await loaded(pagesIn(torn, { network: 'regtest' })), [page(1)]);
});

test('a page that is longer than any page of the module is not passed on', async () => {
  const store = mapStore();
  const pages = pagesIn(store, { network: 'regtest' });
  await pages.save(0, [page(1), new Uint8Array(MAX_PAGE_BYTES), page(3)]);
  assert.equal(await pages.count(), 3);
  assert.equal((await pages.read(1)).length, MAX_PAGE_BYTES);
  store.values.set('rootlight-v1-regtest-newest/2', new Uint8Array(MAX_PAGE_BYTES + 1));
  const later = pagesIn(store, { network: 'regtest' });
  assert.equal(await later.count(), 2);
  assert.equal(await later.read(2), undefined);
});

test('the longest page is as long as the module\'s', () => {
  const source = (path) => readFileSync(new URL(`../../src/light/${path}`, import.meta.url), 'utf8');
  assert.match(source('sync/pages.rs'), /HASH_BYTES: usize = 32;[^]*MAX_PAGE_BYTES: usize = HASH_BYTES \+ MAX_BATCH_BYTES;/);
  assert.match(source('header_batch.rs'), /MAX_BATCH_BYTES: usize = 6 \* 1024 \* 1024;/);
  assert.equal(MAX_PAGE_BYTES, 32 + 6 * 1024 * 1024);
});

test('pages are written one after the other, and none after a failed write', async () => {
  const store = mapStore();
  const put = async (key, value) => {
    if (value[0] === 0) throw new Error('no space');
    await pause(value[0]);
    store.put(key, value);
  };
  const told = [];
  const pages = pagesIn({ get: store.get, put }, { network: 'regtest' }, { onError: ({ message }) => told.push(message) });
  await Promise.all([pages.save(0, [page(20)]), pages.save(0, [page(1)])]);
  assert.deepEqual(await loaded(pages), [page(1)]);
  await Promise.all([pages.save(1, [page(0)]), pages.save(0, [page(2)])]);
  await pages.save(0, [page(3)]);
  assert.deepEqual(await loaded(pages), [page(1)]);
  assert.deepEqual(told, ['verified headers are not kept: no space']);
});

test('pages that cannot be read are skipped, and no page is written without the one before it', async (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  const get = async () => Promise.reject(new Error('no permission'));
  assert.deepEqual(await loaded(pagesIn({ get }, { network: 'regtest' })), []);
  assert.deepEqual(warned.mock.calls.map(({ arguments: [words] }) => words), ['rootlight: verified headers are not kept: no permission']);
  const store = mapStore();
  await pagesIn(store, { network: 'regtest' }).save(1, [page(1)]);
  assert.equal(store.values.size, 0);
});

test('a database changes in whole transactions, yields to another page, and is not opened without need', async () => {
  const work = async () => {
    const { databases } = await import('/test/lib/store-scenario.mjs');
    return databases(await import('/store.js'));
  };
  assert.deepEqual(await inPage((run) => run(work)), {
    unwanted: [],
    connections: 1,
    replaced: [[0], [7]],
    aborted: [[0], [7]],
    after: [[0], [7]],
    gone: [],
    newer: [],
  });
});

test('a database that is closed while a client uses it is opened again', async () => {
  const work = async () => (await import('/test/lib/store-scenario.mjs')).closedDatabases(await import('/store.js'));
  assert.deepEqual(await inPage((run) => run(work)), { told: [], afterDeletion: [[2]], afterClosing: [[2], [3]], connections: 3 });
});

test('databases of former checkpoints and versions are deleted, those that clients use are not', async () => {
  const work = async () => (await import('/test/lib/store-scenario.mjs')).formerDatabases(await import('/store.js'));
  const { left, expected } = await inPage((run) => run(work));
  assert.deepEqual(left, expected);
});
