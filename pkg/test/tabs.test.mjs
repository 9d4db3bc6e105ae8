// Stored headers that several clients share: tabs of one site in a real browser, and clients of one process.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serveChain } from './lib/chain-server.mjs';
import { inPage } from './lib/in-page.mjs';
import { LIMIT, until } from './lib/wait.mjs';

/** Blocks of the chain. A client writes when it has 512 new headers, and when it reaches the head. */
const BLOCKS = 1_200;

let served;
/** The gates for which exchanges over these paths wait. */
const gates = new Map();

before(async () => {
  served = await serveChain(BLOCKS, ({ url }) => gates.get(url)?.());
});

after(() => served.close());

/** Longest wait of an exchange at a gate, in milliseconds. The package gives up an exchange after 20 s. */
const LONGEST_WAIT = 8_000;

/**
 * Makes exchanges over a path wait: `open(count)` lets this many through, or all from then on; `reached()` resolves when one waits. None
 * waits for long, so that a client at a closed gate is slow and does not fail.
 */
function gate(path) {
  const waiting = new Set();
  let left = 0;
  gates.set(path, () => {
    left -= 1;
    if (left >= 0) return undefined;
    return new Promise((resolve) => {
      const go = () => {
        waiting.delete(go);
        resolve();
      };
      waiting.add(go);
      setTimeout(go, LONGEST_WAIT).unref();
    });
  });
  const open = (count = Infinity) => {
    left = count - waiting.size;
    for (const go of [...waiting].slice(0, count)) go();
  };
  return { open, reached: () => until(() => waiting.size > 0, `an exchange over ${path}`) };
}

/** Connects in a tab and stays; `globalThis.connecting` settles once the head is reached. */
const begin = async (options) => {
  const { createProvider } = await import('/index.js');
  globalThis.connecting = createProvider(options);
  globalThis.connecting.catch(() => {});
};

/** The head of the tab's client, once it is `wanted`. */
const head = async (wanted) => {
  const { until } = await import('/test/lib/wait.mjs');
  const provider = await globalThis.connecting;
  return until(async () => {
    const now = Number(await provider.request({ method: 'eth_blockNumber' }));
    return now === wanted && now;
  }, `block ${wanted}`);
};

/** In a tab: waits until the headers up to a block are stored. */
const stored = async (block) => (await import('/test/lib/stored.mjs')).storedUpTo(block);

/** Closes after the headers up to a block are stored. */
const close = async (block) => {
  await (await import('/test/lib/stored.mjs')).storedUpTo(block);
  (await globalThis.connecting).close();
};

test('a slow tab does not truncate the pages of a fast one, and continues writing when that one is closed', LIMIT, async () => {
  const slowGate = gate('/slow');
  const fastGate = gate('/fast');
  const options = (path) => ({ ...served.options, upstream: `${served.url}${path}`, pollSeconds: 0.2 });
  await inPage(async (fast, reload, tab) => {
    const slow = await tab();
    const third = await tab();
    await fast(begin, options('/fast'));
    // Both find an empty store before the first of them writes.
    await slow(begin, options('/slow'));
    for (const { reached } of [fastGate, slowGate]) await reached();
    fastGate.open();
    assert.equal(await fast(head, BLOCKS), BLOCKS);
    await fast(stored, BLOCKS);
    // The slow tab synchronizes up to its first pages.
    slowGate.open(22);
    await slowGate.reached();
    const visit = async (blocks) => {
      const count = await served.during(async () => {
        await third(begin, options('/third'));
        assert.equal(await third(head, blocks), blocks);
      }, '/third');
      await third(close, blocks);
      return count;
    };
    const beside = await visit(BLOCKS);
    assert.ok(beside < 40, `${beside} requests beside two others`);

    slowGate.open();
    assert.equal(await slow(head, BLOCKS), BLOCKS);

    // The writer closes; the other tab, which has written nothing so far, stores the next pages.
    await fast(close, BLOCKS);
    await served.ask('hardhat_mine', '0x64');
    assert.equal(await slow(head, BLOCKS + 100), BLOCKS + 100);
    await slow(close, BLOCKS + 100);
    const later = await visit(BLOCKS + 100);
    assert.ok(later < 40, `${later} requests after the writer was closed`);
  });
});

test('stored pages are used up to a missing one', LIMIT, async () => {
  const blocks = Number(await served.ask('eth_blockNumber'));
  const visit = async (options, missing) => {
    const done = (request) => new Promise((resolve, reject) => Object.assign(request, { onsuccess: () => resolve(request.result), onerror: reject }));
    for (const { name } of missing === null ? [] : await indexedDB.databases()) {
      const db = await done(indexedDB.open(name));
      await done(db.transaction('pages', 'readwrite').objectStore('pages').delete(missing));
      db.close();
    }
    const { createProvider } = await import('/index.js');
    const { released, storedUpTo } = await import('/test/lib/stored.mjs');
    const provider = await createProvider(options);
    const head = Number(await provider.request({ method: 'eth_blockNumber' }));
    await storedUpTo(head);
    provider.close();
    await released();
    return head;
  };
  await inPage(async (run, reload) => {
    const visited = async (missing = null) => {
      await reload();
      return served.during(async () => assert.equal(await run(visit, served.options, missing), blocks));
    };
    const cold = await visited();
    const warm = await visited();
    const holed = await visited(4);
    const mended = await visited();
    const counts = JSON.stringify({ cold, warm, holed, mended });
    // Five pages of 64 blocks remain.
    assert.ok(cold > blocks && warm < 40 && holed < cold - 4 * 64 + 40 && holed > 64 && mended < 40, counts);
  });
});

test('pages are read a few at a time, and not beyond an invalid one', LIMIT, async () => {
  const work = async (options) => {
    const { createProvider } = await import('/index.js');
    const { released, storedUpTo } = await import('/test/lib/stored.mjs');
    const first = await createProvider(options);
    await storedUpTo(Number(await first.request({ method: 'eth_blockNumber' })));
    first.close();
    await released();
    const done = (request) => new Promise((resolve, reject) => Object.assign(request, { onsuccess: () => resolve(request.result), onerror: reject }));
    const [{ name }] = await indexedDB.databases();
    const db = await done(indexedDB.open(name));
    const store = db.transaction('pages', 'readwrite').objectStore('pages');
    const junk = new Uint8Array(70_000);
    for (let page = 3; page < 1_000; page += 1) store.put(junk, page);
    await new Promise((resolve) => (store.transaction.oncomplete = resolve));
    db.close();
    let bytes = 0;
    for (const method of ['get', 'getAll']) {
      const real = IDBObjectStore.prototype[method];
      IDBObjectStore.prototype[method] = function (...given) {
        const request = real.apply(this, given);
        request.addEventListener('success', () => {
          bytes += [request.result].flat().reduce((sum, page) => sum + (page?.length ?? 0), 0);
        });
        return request;
      };
    }
    const provider = await createProvider(options);
    const head = Number(await provider.request({ method: 'eth_blockNumber' }));
    provider.close();
    return { head, bytes };
  };
  // The client runs on the page's thread, where its reads are counted.
  const { head, bytes } = await inPage((run) => run(work, { ...served.options, worker: false }));
  assert.equal(head, Number(await served.ask('eth_blockNumber')));
  assert.ok(bytes > 0 && bytes < 4 * 2 ** 20, `${bytes} bytes read`);
});

test('a database that another page keeps from opening is reported, and the client works without it', LIMIT, async () => {
  const work = async (options) => {
    const { createProvider } = await import('/index.js');
    const name = `rootlight-v1-${options.network}-${options.checkpoint.hash}`;
    // A page that does not close its connection when another one deletes the database.
    const held = indexedDB.open(name, 1);
    await new Promise((resolve) => (held.onsuccess = resolve));
    const deleting = indexedDB.deleteDatabase(name);
    const told = [];
    const provider = await createProvider({ ...options, onStoreError: ({ message }) => told.push(message) });
    const head = Number(await provider.request({ method: 'eth_blockNumber' }));
    provider.close();
    held.result.close();
    await new Promise((resolve) => (deleting.onsuccess = resolve));
    return { head, told };
  };
  const { head, told } = await inPage((run) => run(work, served.options));
  assert.equal(head, Number(await served.ask('eth_blockNumber')));
  assert.deepEqual(told, ['verified headers are not kept: the database did not open within 5 s: close other pages of this site']);
});

/** Pages of 64 headers that the chain fills; the last one is not full. */
const pagesOfChain = async () => Math.floor(Number(await served.ask('eth_blockNumber')) / 64) + 1;

/** A store that the caller passes. It has a value for each page, and one for the end. */
const mapStore = (values = new Map()) => ({ values, get: (key) => values.get(key), put: (key, value) => void values.set(key, value) });

test('two clients with the same store of the caller do not overwrite each other', LIMIT, async () => {
  const { createProvider } = await import('../index.js');
  const store = mapStore();
  const pages = await pagesOfChain();
  const gates = ['/first', '/second'].map(gate);
  const options = (path) => ({ ...served.options, upstream: `${served.url}${path}`, pollSeconds: 0.2, store });
  const connecting = ['/first', '/second'].map((path) => createProvider(options(path)));
  for (const { reached } of gates) await reached();
  gates[0].open();
  const first = await connecting[0];
  await until(() => store.values.size > pages, 'all pages');
  const written = new Map(store.values);
  // The second client synchronizes up to its first pages.
  gates[1].open(22);
  await gates[1].reached();
  assert.deepEqual(store.values, written);
  gates[1].open();
  for (const each of [first, await connecting[1]]) each.close();
});

test('few pages of a caller\'s store are read beyond an invalid one', LIMIT, async () => {
  const { createProvider } = await import('../index.js');
  const store = mapStore();
  const pages = await pagesOfChain();
  const first = await createProvider({ ...served.options, store });
  await until(() => store.values.size > pages, 'all pages');
  first.close();
  let read = 0;
  // A store without end.
  const endless = {
    get: async (key) => {
      read += 1;
      if (read > 100) throw new Error('more than a hundred pages');
      return key.endsWith('/0') ? store.get(key) : new Uint8Array(70_000);
    },
    put: store.put,
  };
  const cold = await served.during(async () => (await createProvider({ ...served.options, store: null })).close());
  const failures = [];
  const warm = await served.during(async () => (await createProvider({ ...served.options, store: endless, onStoreError: (error) => failures.push(error) })).close());
  // The end is searched in steps that double, and the valid pages in steps that halve.
  assert.ok(read < 80, `${read} pages read`);
  assert.deepEqual(failures, []);
  assert.ok(warm < cold - 32, `${warm} requests, ${cold} without a store`);
});
