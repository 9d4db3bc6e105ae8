// What the light client keeps between two runs, in Node.js and in a real page: taken back where it holds, ignored and
// replaced where it does not.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { servePackage } from './lib/pages.mjs';
import { visit } from './lib/store-scenario.mjs';
import { serveRecording } from './lib/upstream.mjs';

let node;
let upstream;
let options;

before(async () => {
  ({ node, upstream, options } = await serveRecording());
});

after(() => upstream.close());

/** How many questions the upstream got during some work; the head must be the true one. */
async function asked(work) {
  const before = upstream.asked.count;
  assert.equal(await work(), node.head);
  return upstream.asked.count - before;
}

const mapStore = (values = new Map()) => ({ values, get: (key) => values.get(key), put: (key, value) => void values.set(key, value) });

test('a store with get and put makes the next start short', async () => {
  const rootlight = await import('../index.js');
  const store = mapStore();
  const cold = await asked(() => visit(rootlight, { ...options, store }));
  const warm = await asked(() => visit(rootlight, { ...options, store }));
  assert.ok(cold > node.head && warm <= 8, `${cold} questions cold, ${warm} warm`);
});

test('damage and foreign contents are ignored and replaced', async () => {
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
    assert.ok(again > node.head, `${again} questions after ${harm}`);
    assert.deepEqual(store.values, good, `replaced after ${harm}`);
  }
});

test('a store that fails is like none', async () => {
  const rootlight = await import('../index.js');
  const failing = async () => Promise.reject(new Error('no space'));
  await asked(() => visit(rootlight, { ...options, store: { get: failing, put: failing } }));
});

test('a page keeps headers in IndexedDB', async () => {
  const site = await servePackage();
  const browser = await startBrowser();
  try {
    const inPage = (harm) => async () => {
      await browser.open(`${site.url}/test/page.html`);
      const run = async (settings, change) => {
        const { harmDatabases, visit } = await import('/test/lib/store-scenario.mjs');
        await harmDatabases(change);
        return visit(await import('/index.js'), settings);
      };
      return browser.run(run, options, harm ?? null);
    };
    const cold = await asked(inPage());
    const warm = await asked(inPage());
    const damaged = await asked(inPage('flip'));
    const rebuilt = await asked(inPage());
    const cut = await asked(inPage('cut'));
    const last = await asked(inPage());
    const counts = JSON.stringify({ cold, warm, damaged, rebuilt, cut, last });
    assert.ok(Math.min(cold, damaged, cut) > node.head && Math.max(warm, rebuilt, last) <= 8, counts);
  } finally {
    await browser.close();
    await site.close();
  }
});
