// The module's own exchanges over HTTP: its requests, and the responses that it accepts. The limits are those of httpTransport.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { instantiate } from '../dist/rootlight.js';
import { load } from '../index.js';
import { instance } from '../instance.js';
import { newLife } from '../life.js';
import { listen } from './lib/upstream.mjs';

let server;
let post;
/** What the server does with a request. */
let respond;
const life = newLife();

before(async () => {
  server = await listen(createServer((request, response) => respond(request, response)));
  ({ post } = await instance(instantiate, await load(), life));
});
after(() => server.close());

/** Responds with a status, headers and pieces of a body. */
const answer = (status, headers, ...pieces) => {
  respond = (_, response) => {
    response.writeHead(status, headers);
    for (const piece of pieces) response.write(piece);
    response.end();
  };
};

test('a request has its body and its credentials, and no cookies and no referrer', async () => {
  let asked;
  respond = async (request, response) => {
    const body = await request.toArray();
    asked = { method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(body).toString() };
    response.end('{}');
  };
  assert.equal(Buffer.from(await post(`${server.url}/key?a=1`, 'Basic x', '{"id":"ä"}')).toString(), '{}');
  const { headers, ...rest } = asked;
  assert.deepEqual(rest, { method: 'POST', url: '/key?a=1', body: '{"id":"ä"}' });
  const { authorization, cookie, referer } = headers;
  assert.deepEqual([headers['content-type'], authorization, cookie, referer], ['application/json', 'Basic x', undefined, undefined]);
  await post(server.url, undefined, '{}');
  assert.equal(asked.headers.authorization, undefined);
});

test('the runtime gets the options that keep a request private', async (t) => {
  const fetched = t.mock.method(globalThis, 'fetch', async () => new Response('{}'));
  const limited = t.mock.method(AbortSignal, 'timeout');
  await post('https://node.example/key', undefined, '{}');
  const [{ arguments: [request] }] = fetched.mock.calls;
  assert.deepEqual(
    [request.cache, request.credentials, request.redirect, request.referrerPolicy, request.signal instanceof AbortSignal],
    ['no-store', 'omit', 'error', 'no-referrer', true],
  );
  assert.deepEqual(limited.mock.calls.map((call) => call.arguments), [[20_000]]);
});

test('a response is accepted with the statuses that nodes use, and joined from its pieces', async () => {
  for (const status of [200, 400]) {
    answer(status, {}, Uint8Array.of(1, 2), Uint8Array.of(3), Uint8Array.of(4, 5, 6));
    assert.deepEqual([...(await post(server.url, undefined, '{}'))], [1, 2, 3, 4, 5, 6]);
  }
  answer(200, {});
  assert.equal((await post(server.url, undefined, '{}')).length, 0);
  for (const status of [201, 401, 404, 500]) {
    answer(status, {}, 'no');
    const error = await post(server.url, undefined, '{}').catch((reason) => reason);
    assert.deepEqual([error.message, 'retryAfter' in error], [`HTTP status ${status}`, false]);
  }
});

test('the error of a busy upstream contains the pause that it asks for', async (t) => {
  // A whole second, as headers have them.
  const now = 1_700_000_000_000;
  t.mock.timers.enable({ apis: ['Date'], now });
  const pause = async (status, headers) => {
    answer(status, headers, '');
    return (await post(server.url, undefined, '{}').catch((error) => error)).retryAfter;
  };
  assert.equal(await pause(429, { 'retry-after': '7' }), 7);
  assert.equal(await pause(429, { 'retry-after': '1.2' }), 2);
  assert.equal(await pause(503, {}), null);
  for (const odd of ['soon', '', '0', '-7', new Date(0).toUTCString()]) assert.equal(await pause(429, { 'retry-after': odd }), null, odd);
  assert.equal(await pause(429, { 'retry-after': new Date(now + 30_000).toUTCString() }), 30);
});

test('a response may have exactly the largest size', async () => {
  const piece = new Uint8Array(2 ** 20);
  answer(200, {}, ...Array(32).fill(piece));
  assert.equal((await post(server.url, undefined, '{}')).length, 2 ** 25);
  answer(200, {}, ...Array(32).fill(piece), Uint8Array.of(1));
  await assert.rejects(post(server.url, undefined, '{}'), { message: `answer larger than ${2 ** 25} bytes` });
});

test('a redirect, a refused connection and whatever a page\'s fetch throws are errors, and end nothing', async (t) => {
  answer(302, { location: '/elsewhere' });
  await assert.rejects(post(server.url, undefined, '{}'), Error);
  await assert.rejects(post('http://127.0.0.1:1/', undefined, '{}'), Error);
  await assert.rejects(post('https://user:word@node.example', undefined, '{}'), TypeError);
  for (const thrown of ['down', undefined, { message: 'down' }]) {
    const fetched = t.mock.method(globalThis, 'fetch', () => {
      throw thrown;
    });
    await assert.rejects(post(server.url, undefined, '{}'), { message: thrown === undefined ? 'undefined' : 'down' });
    fetched.mock.restore();
  }
  answer(200, {}, '{}');
  assert.equal((await post(server.url, undefined, '{}')).length, 2);
  assert.equal(life.isOver, false);
});
