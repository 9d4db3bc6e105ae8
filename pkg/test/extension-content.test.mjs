// What the content script of the example of an extension lets through to the worker that serves all pages. Needs no browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import vm from 'node:vm';

/**
 * The script in a page: `say` is a message of the page, `answer` one of the worker; `passed` and `posts` are what the worker and the page
 * get. `wait` lets time pass.
 */
function setup() {
  const [passed, posts] = [[], []];
  let [heard, answer, time] = [undefined, undefined, 0];
  const window = {
    origin: 'https://a.example',
    addEventListener: (_, listener) => (heard = listener),
    postMessage: (message) => posts.push(message),
  };
  const port = { postMessage: (message) => passed.push(message), onMessage: { addListener: (listener) => (answer = listener) }, onDisconnect: { addListener() {} } };
  const chrome = { runtime: { connect: () => port } };
  vm.runInNewContext(readFileSync(new URL('../../examples/extension/content.js', import.meta.url), 'utf8'), { window, chrome, performance: { now: () => time } });
  return { passed, posts, answer: (message) => answer(message), wait: (millis) => (time += millis), say: (data, source = window) => heard({ source, data: { from: 'rootlight-page', ...data } }) };
}

test('a request that is too long does not reach the worker', () => {
  const { passed, posts, say } = setup();
  const long = 'x'.repeat(300_000);
  const shared = Array.from({ length: 16 }).reduce((part) => [part, part], 'xxxxxxxx');
  for (const [id, call] of [{ method: 'a', params: [long] }, { method: long }, { method: 'a', params: { [long]: 1 } }, { method: 'a', params: shared }].entries()) say({ id, ...call });
  assert.deepEqual(posts.map(({ id, error }) => [id, error.code]), [0, 1, 2, 3].map((id) => [id, -32005]));
  say({ id: 4, method: 'eth_chainId', params: ['x'.repeat(200_000)] });
  assert.deepEqual(passed.map(({ id }) => id), [4]);
});

test('only what page.js sends reaches the worker', () => {
  const { passed, posts, say } = setup();
  for (const id of [undefined, null, 'x', 1.5, { long: 'x'.repeat(300_000) }, []]) say({ id, method: 'eth_chainId' });
  say({ id: 1, method: 'eth_chainId' }, {});
  say({ id: 1, method: 'eth_chainId', from: 'another' });
  assert.deepEqual([passed, posts], [[], []]);
  for (const method of [undefined, null, {}, ['eth_chainId'], 7]) say({ id: 1, method });
  assert.deepEqual(posts.map(({ error }) => error.code), [-32600, -32600, -32600, -32600, -32600]);
  say({ id: 1, method: 'eth_chainId', more: 'x'.repeat(300_000) });
  assert.deepEqual(JSON.parse(JSON.stringify(passed)), [{ id: 1, method: 'eth_chainId' }]);
});

test('a page has 32 requests in progress, and those beyond do not reach the worker', () => {
  const { passed, posts, say, answer } = setup();
  for (let id = 1; id <= 40; id += 1) say({ id, method: 'eth_chainId' });
  say({ id: 1, method: 'eth_chainId' });
  assert.deepEqual([passed.length, posts.length, posts[0].error.code], [32, 9, -32005]);
  answer({ id: 1, result: '0x1e' });
  for (const id of [41, 42]) say({ id, method: 'eth_chainId' });
  assert.deepEqual(passed.slice(32).map(({ id }) => id), [41]);
});

test('nothing reaches the worker in the second after it has refused a request for the budget', () => {
  const { passed, posts, say, answer, wait } = setup();
  say({ id: 1, method: 'eth_chainId' });
  answer({ id: 1, error: { code: -32005 }, isBusy: true });
  wait(999);
  say({ id: 2, method: 'eth_chainId' });
  assert.deepEqual([passed.length, posts.at(-1).id, posts.at(-1).error.code], [1, 2, -32005]);
  wait(1);
  say({ id: 3, method: 'eth_chainId' });
  answer({ id: 3, error: { code: -32005 } });
  say({ id: 4, method: 'eth_chainId' });
  assert.deepEqual(passed.map(({ id }) => id), [1, 3, 4]);
});
