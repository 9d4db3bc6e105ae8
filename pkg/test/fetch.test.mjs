// Exchanges over HTTP with a server: what it receives, and what the module is given.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { exchangeOver } from '../exchange.js';
import { newLife } from '../life.js';
import { httpTransport } from '../transport.js';
import { listen } from './lib/upstream.mjs';

let server;
/** What the server does with a request. */
let respond;
const post = (address, body) => httpTransport(address)(body);

before(async () => {
  server = await listen(createServer((request, response) => respond(request, response)));
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
  const address = server.url.replace('//', '//user:word@');
  assert.equal(Buffer.from(await post(`${address}/key?a=1`, '{"id":"ä"}')).toString(), '{}');
  const { headers, ...rest } = asked;
  assert.deepEqual(rest, { method: 'POST', url: '/key?a=1', body: '{"id":"ä"}' });
  const { authorization, cookie, referer } = headers;
  assert.deepEqual([headers['content-type'], authorization, cookie, referer], ['application/json', `Basic ${btoa('user:word')}`, undefined, undefined]);
  await post(server.url, '{}');
  assert.equal(asked.headers.authorization, undefined);
});

test('the runtime gets the options that keep a request private', async (t) => {
  const fetched = t.mock.method(globalThis, 'fetch', async () => new Response('{}'));
  const limited = t.mock.method(AbortSignal, 'timeout');
  await post('https://node.example/key', '{}');
  const [{ arguments: [, request] }] = fetched.mock.calls;
  assert.deepEqual(
    [request.cache, request.credentials, request.redirect, request.referrerPolicy, request.signal instanceof AbortSignal],
    ['no-store', 'omit', 'error', 'no-referrer', true],
  );
  assert.deepEqual(limited.mock.calls.map((call) => call.arguments), [[20_000]]);
});

test('a response is accepted with the statuses that nodes use, and joined from its pieces', async () => {
  for (const status of [200, 400]) {
    answer(status, {}, Uint8Array.of(1, 2), Uint8Array.of(3), Uint8Array.of(4, 5, 6));
    assert.deepEqual([...(await post(server.url, '{}'))], [1, 2, 3, 4, 5, 6]);
  }
  answer(200, {});
  assert.equal((await post(server.url, '{}')).length, 0);
  for (const status of [201, 401, 404, 500]) {
    answer(status, {}, 'no');
    const error = await post(server.url, '{}').catch((reason) => reason);
    assert.deepEqual([error.message, 'retryAfter' in error], [`HTTP status ${status}`, false]);
  }
});

test('the error of a busy upstream contains the pause that it asks for', async (t) => {
  // A whole second, as headers have them.
  const now = 1_700_000_000_000;
  t.mock.timers.enable({ apis: ['Date'], now });
  const pause = async (status, headers) => {
    answer(status, headers, '');
    return (await post(server.url, '{}').catch((error) => error)).retryAfter;
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
  assert.equal((await post(server.url, '{}')).length, 2 ** 25);
  answer(200, {}, ...Array(32).fill(piece), Uint8Array.of(1));
  await assert.rejects(post(server.url, '{}'), { message: `answer larger than ${2 ** 25} bytes` });
});

test('a redirect, a refused connection and whatever a page\'s fetch throws are errors, and end nothing', async (t) => {
  answer(302, { location: '/elsewhere' });
  await assert.rejects(post(server.url, '{}'), Error);
  await assert.rejects(post('http://127.0.0.1:1/', '{}'), Error);
  const life = newLife();
  const exchange = exchangeOver(httpTransport(server.url), life);
  for (const thrown of ['down', undefined, { message: 'down' }]) {
    const fetched = t.mock.method(globalThis, 'fetch', () => {
      throw thrown;
    });
    assert.equal(await exchange('{}', false), thrown === undefined ? 'unknown failure' : 'down');
    fetched.mock.restore();
  }
  answer(200, {}, '{}');
  assert.equal((await exchange('{}', false)).length, 2);
  assert.equal(life.isOver, false);
});
