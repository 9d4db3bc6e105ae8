// Locks by which pages and workers notice each other's end, where a page may not use them. Needs no module.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signOfLife, watch } from '../ports.js';

/** Runs some work with another Web Locks API. */
async function withLocks(locks, work) {
  const former = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { locks } });
  try {
    await work();
  } finally {
    if (former) Object.defineProperty(globalThis, 'navigator', former);
    else delete globalThis.navigator;
  }
}

test('a page without locks, and one that may not use them, goes on without a sign of life', async () => {
  const refused = { request: () => Promise.reject(new DOMException('The request was denied.', 'SecurityError')) };
  for (const locks of [undefined, refused]) {
    await withLocks(locks, async () => {
      assert.equal(await signOfLife('page', new Promise(() => {})), undefined);
      watch('rootlight-worker-1', new AbortController().signal, () => assert.fail('nobody is gone'));
      await new Promise(setImmediate);
    });
  }
});

test('a sign of life is held until it is released', async () => {
  let held;
  const locks = { request: (name, work) => (held = Promise.resolve(work({ name }))) };
  await withLocks(locks, async () => {
    let release;
    const name = await signOfLife('page', new Promise((resolve) => (release = resolve)));
    assert.match(name, /^rootlight-page-[\da-f-]{36}$/);
    assert.equal(await Promise.race([held, new Promise((resolve) => setImmediate(resolve, 'held'))]), 'held');
    release();
    await held;
  });
});
