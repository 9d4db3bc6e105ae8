// Loading a module: from the package or from where the caller says, once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, once } from '../load.js';

/** The smallest valid module. */
const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

const isModule = (module) => assert.ok(module instanceof WebAssembly.Module);

test('a module is loaded from disk in Node.js, by its address in a page, or from the caller if given', async (t) => {
  const here = new URL('../dist/rootlight_verify_bg.wasm', import.meta.url);
  const there = new URL('https://site.example/module.wasm');
  const response = (type, status = 200) => new Response(EMPTY, { status, headers: { 'content-type': type } });
  const fetched = t.mock.method(globalThis, 'fetch', async () => response('application/wasm'));
  isModule(await load(here));
  isModule(await load(there));
  for (const source of [EMPTY, EMPTY.buffer, await WebAssembly.compile(EMPTY)]) {
    for (const url of [here, there]) isModule(await load(url, source));
  }
  // Responses of servers that do not know the type.
  for (const given of [response('application/wasm'), response('text/plain'), Promise.resolve(response('text/plain'))]) isModule(await load(here, given));
  assert.equal(fetched.mock.callCount(), 1);
  isModule(await load(here, 'https://cdn.example/module.wasm'));
  assert.deepEqual(fetched.mock.calls.map(({ arguments: [asked] }) => String(asked)), [there.href, 'https://cdn.example/module.wasm']);
  await assert.rejects(load(there, response('text/plain', 404)), { code: 4900, message: /HTTP status 404; serve the folder dist/ });
  await assert.rejects(load(there, response('text/plain', 403)), { code: 4900, message: /HTTP status 403; .* rootlight\/vite\.js$/ });
  await assert.rejects(load(there, new Uint8Array(8)), WebAssembly.CompileError);
});

test('a module is loaded once, and again only after a reported failure; a compiled one is used as it is', async () => {
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
  const compiled = await WebAssembly.compile(EMPTY);
  assert.equal(await bring(compiled), compiled);
  assert.equal(await bring(), 'module');
  assert.deepEqual(given, ['a', 'c']);
});
