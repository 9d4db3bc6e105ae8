// The transport over HTTP: its requests, and the responses that it accepts.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { httpTransport } from '../transport.js';
import { listen } from './lib/upstream.mjs';

const URL_ = 'https://node.example/key';

/** A time of the clock, in milliseconds: a whole second, as headers have them. */
const NOW = 1_700_000_000_000;

/** A transport to which `respond(url, options)` responds. */
const answered = (respond, options) => httpTransport(URL_, { ...options, fetch: async (...asked) => respond(...asked) });

/** A body in pieces; `seen.cancelled` is set if the rest was refused. */
function body(pieces, seen = {}) {
  const rest = [...pieces];
  return new ReadableStream({
    pull: (controller) => (rest.length ? controller.enqueue(rest.shift()) : controller.close()),
    cancel: () => {
      seen.cancelled = true;
    },
  }, { highWaterMark: 0 });
}

test('a request has no cookies and no referrer, follows no redirect and is never cached', async () => {
  let asked;
  const respond = (...given) => {
    asked = given;
    return new Response('{}');
  };
  const headers = { authorization: 'Bearer x', 'content-type': 'text/plain' };
  await answered(respond, { headers })('{"id":1}');
  const [url, { signal, ...options }] = asked;
  assert.equal(url, URL_);
  assert.ok(signal instanceof AbortSignal);
  assert.deepEqual(options, {
    method: 'POST',
    headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
    body: '{"id":1}',
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    referrerPolicy: 'no-referrer',
  });
});

test('a response is accepted with the statuses that nodes use, and joined from its pieces', async () => {
  for (const status of [200, 400]) {
    const pieces = [[1, 2], [], [3], [4, 5, 6]].map((piece) => Uint8Array.from(piece));
    assert.deepEqual([...(await answered(() => new Response(body(pieces), { status }))('{}'))], [1, 2, 3, 4, 5, 6]);
  }
  assert.equal((await answered(() => new Response(null))('{}')).length, 0);
  for (const status of [201, 401, 404, 429, 500, 503]) {
    const seen = {};
    const transport = answered(() => new Response(body([new Uint8Array(1)], seen), { status }));
    await assert.rejects(transport('{}'), { message: `HTTP status ${status}` });
    assert.ok(seen.cancelled, `the body of ${status} is not read`);
    await assert.rejects(answered(() => new Response(null, { status }))('{}'), { message: `HTTP status ${status}` });
  }
});

test('a response may have exactly the largest size', async () => {
  const piece = new Uint8Array(1024 * 1024);
  for (const [maxBytes, pieces, most] of [[3, [piece.subarray(0, 2), piece.subarray(0, 1)], 3], [undefined, Array(32).fill(piece), 32 * piece.length]]) {
    const taken = await answered(() => new Response(body(pieces)), { maxBytes })('{}');
    assert.equal(taken.length, most);
    const seen = {};
    const larger = body([...pieces, piece.subarray(0, 1), piece], seen);
    await assert.rejects(answered(() => new Response(larger), { maxBytes })('{}'), { message: `answer larger than ${most} bytes` });
    assert.ok(seen.cancelled);
  }
});

test('an exchange has a time limit, 20 seconds by default', async (t) => {
  const server = await listen(createServer(() => {}));
  const given = t.mock.method(AbortSignal, 'timeout');
  try {
    await assert.rejects(httpTransport(server.url, { timeout: 20 })('{}'), { name: 'TimeoutError' });
    await answered(() => new Response('{}'))('{}');
    assert.deepEqual(given.mock.calls.map((call) => call.arguments), [[20], [20_000]]);
  } finally {
    await server.close();
  }
});

test('the error of a busy upstream contains the pause that it asks for', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: NOW });
  const after = async (status, headers) =>
    answered(() => new Response('', { status, headers }))('{}').catch((error) => error.retryAfter);
  assert.equal(await after(429, { 'retry-after': '7' }), 7);
  assert.equal(await after(429, { 'retry-after': '1.2' }), 2);
  assert.equal(await after(503, {}), null);
  for (const odd of ['soon', '', '0', '-7', new Date(0).toUTCString()]) {
    assert.equal(await after(429, { 'retry-after': odd }), null, odd);
  }
  assert.equal(await after(500, { 'retry-after': '7' }), undefined);
  assert.equal(await after(429, { 'retry-after': new Date(NOW + 30_000).toUTCString() }), 30);
});

test('a user and a password in the address become a header, and no error contains them', async () => {
  const asked = [];
  const fetch = async (url, { headers }) => {
    asked.push([url, headers.authorization]);
    return new Response('{}');
  };
  await httpTransport('https://us%20er:p%C3%A4ss@node.example/key', { fetch })('{}');
  await httpTransport('https://user@node.example/', { fetch, headers: { authorization: 'Bearer x' } })('{}');
  assert.deepEqual(asked, [
    ['https://node.example/key', `Basic ${Buffer.from('us er:päss').toString('base64')}`],
    ['https://node.example/', 'Bearer x'],
  ]);
  const error = (() => {
    try {
      return httpTransport('https://user:pass@');
    } catch (reason) {
      return reason;
    }
  })();
  assert.ok(error instanceof TypeError && !inspect(error).includes('pass@'), inspect(error));
});
