// Loading a module: from beside the package or from where the caller says, once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, once } from '../load.js';

const init = async ({ module_or_path: given }) => given;

test('a module comes from disk in Node.js, by its address on a page, and from the caller first of all', async () => {
  const here = new URL(import.meta.url);
  assert.match(String(await load(init, here)), /^\/\/ Loading a module/);
  const there = new URL('https://site.example/module.wasm');
  assert.equal(await load(init, there), there);
  const bytes = new Uint8Array(8);
  for (const url of [here, there]) assert.equal(await load(init, url, bytes), bytes);
});

test('it is loaded once, and again only after a failure, which is told', async () => {
  const outcomes = [Promise.reject(new Error('no network')), Promise.resolve('module'), Promise.resolve('another')];
  const given = [];
  const bring = once((source) => {
    given.push(source);
    return outcomes.shift();
  });
  const both = [bring('a'), bring('b')];
  for (const attempt of both) await assert.rejects(attempt, /no network/);
  assert.equal(await bring('c'), 'module');
  assert.equal(await bring('d'), 'module');
  assert.deepEqual(given, ['a', 'c']);
});
