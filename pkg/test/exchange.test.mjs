// Exchanges with an upstream as the module has them, and what their words say of an address.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { runInNewContext } from 'node:vm';
import { exchangeOver } from '../exchange.js';
import { createProvider } from '../index.js';
import { newLife } from '../life.js';
import { maskOf, masked, withoutSecrets } from '../secrets.js';
import { serveChain } from './lib/chain-server.mjs';
import { listen } from './lib/upstream.mjs';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('four exchanges of callers and four of synchronization run at once, until their responses are taken', async () => {
  const asked = [];
  const exchange = exchangeOver(async (body) => {
    asked.push(body);
    return Uint8Array.of(asked.length);
  }, newLife());
  const callers = ['a', 'b', 'c', 'd', 'e', 'f'].map((body) => exchange(body, false));
  await settled();
  assert.equal(asked.join(''), 'abcd');
  const following = ['g', 'h', 'i', 'j', 'k'].map((body) => exchange(body, true));
  await settled();
  assert.equal(asked.join(''), 'abcdghij');
  assert.deepEqual((await callers[1])(), Uint8Array.of(2));
  await settled();
  assert.equal(asked.join(''), 'abcdghije');
  (await following[0])();
  (await callers[0])();
  await settled();
  assert.equal(asked.join(''), 'abcdghijekf');
});

test('synchronization waits for room in the store, requests of callers do not', async () => {
  const asked = [];
  let makeRoom;
  const room = () => new Promise((resolve) => (makeRoom = resolve));
  const exchange = exchangeOver(async (body) => (asked.push(body), new Uint8Array(1)), newLife(), room);
  void exchange('synchronization', true);
  void exchange('question', false);
  await settled();
  assert.deepEqual(asked, ['question']);
  makeRoom();
  await settled();
  assert.deepEqual(asked, ['question', 'synchronization']);
});

test('a failed exchange makes room at once and gives the reason', async () => {
  const outcomes = [
    [async () => Promise.reject(new Error('down')), 'down'],
    [() => { throw new Error('at once'); }, 'at once'],
    [async () => 'text', 'the transport did not return a Uint8Array'],
    [async () => Promise.reject(undefined), 'unknown failure'],
    [async () => Promise.reject(Object.assign(new Error('busy'), { retryAfter: 3 })), 3],
    [async () => Promise.reject(Object.assign(new Error('busy'), { retryAfter: null })), NaN],
  ];
  for (const [transport, reason] of outcomes) {
    const exchange = exchangeOver(transport, newLife());
    for (let count = 0; count < 6; count += 1) assert.deepEqual(await exchange('', false), reason);
  }
});

test('a failure and a response are reported, a node that asks for a pause is not', async () => {
  const reports = [];
  const outcomes = [new Error('down'), undefined, Object.assign(new Error('busy'), { retryAfter: 3 })];
  for (const outcome of outcomes) {
    const transport = async () => (outcome ? Promise.reject(outcome) : new Uint8Array(1));
    await exchangeOver(transport, newLife(), undefined, (reason) => reports.push(reason))('', false);
  }
  assert.deepEqual(reports, ['down', undefined]);
});

test('bytes of another frame are bytes', async () => {
  const bytes = runInNewContext('new Uint8Array([1, 2])');
  assert.ok(!(bytes instanceof Uint8Array));
  const take = await exchangeOver(async () => bytes, newLife())('', false);
  assert.equal(take(), bytes);
});

test('an exchange ends after a minute, or with its client', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const life = newLife();
  const exchange = exchangeOver(() => new Promise(() => {}), life);
  const late = exchange('', false);
  await settled();
  t.mock.timers.tick(60_000);
  assert.equal(await late, 'the time limit is over: ask again later, or add another upstream');
  const under = [exchange('', false), exchange('', true)];
  life.end(new Error('closed'));
  assert.deepEqual(await Promise.all(under), ['closed', 'closed']);
  assert.equal(await exchange('', false), 'closed');
});

test('errors contain only the scheme and the host of an address', () => {
  for (const [text, said] of [
    ['no https://user:pass@node.example:4444/key?key=1#key here', 'no https://node.example:4444 here'],
    ["Failed to parse 'wss://user@node.example/key'.", "Failed to parse 'wss://node.example'."],
    ['http://a@b@c.example/x', 'http://c.example'],
    ['https://[::1]:80/key', 'https://[::1]:80'],
    ['nothing to hide: at 10:30', 'nothing to hide: at 10:30'],
    // The text is cut before the password.
    [`${'x '.repeat(990)}https://user:${'p'.repeat(100)}@node.example/`, 'x '.repeat(990)],
  ]) {
    assert.equal(withoutSecrets(text), said);
  }
});

test('a long text is cut before it is searched for addresses', () => {
  // Nothing is left of its first word, of which the search would have left the scheme and the host.
  assert.equal(withoutSecrets('a.a://@'.repeat(1e6)), '');
});

test('words of a node contain no password and no key of its address, also where they stand alone', () => {
  const mask = maskOf('wss://user:hunter%202@node.example/v3/0123456789abcdef?token=sesame&v=1');
  for (const [text, said] of [
    ['key 0123456789abcdef is over its limit', 'key ... is over its limit'],
    ['bad token sesame, "hunter 2" or hunter%202', 'bad token ..., "..." or ...'],
    ['user v3 at https://user:x@node.example/v3/0123456789abcdef: 1', 'user v3 at https://node.example 1'],
  ]) {
    assert.equal(mask(text), said);
    const errors = (message) => JSON.stringify([{ id: 1, error: { code: -1, message } }, { id: 2, result: '0x0123456789abcdef' }]);
    const bytes = (message) => new TextEncoder().encode(errors(message));
    assert.deepEqual(masked(bytes(text), mask), bytes(said));
  }
  // What has nothing to mask stays as it is, also if it is no JSON.
  for (const text of ['{"message":"a \\u0041"}', '{"message":"\\x"}', '{"message":"', '']) {
    const bytes = new TextEncoder().encode(text);
    assert.equal(masked(bytes, mask), bytes);
  }
});

test('a response with messages without end is masked soon', () => {
  const begin = performance.now();
  const bytes = masked(new TextEncoder().encode(`[${'"message":"x",'.repeat(2_000_000)}0]`), withoutSecrets);
  assert.ok(bytes.length < 27_000_000);
  assert.ok(performance.now() - begin < 10_000);
});

/** Everything that an error shows. */
const shown = (error) => `${inspect(error, { showHidden: true, depth: 9 })} ${JSON.stringify(error)} ${error.stack}`;

test('no error of a client contains the user, the password or the key in an upstream\'s address', async () => {
  const down = await listen(createServer());
  await down.close();
  const port = new URL(down.url).port;
  const secret = `user:s3cret@127.0.0.1:${port}/k3y?k3y=1`;
  const network = { network: 'regtest', store: null };
  const transport = async () => Promise.reject(new TypeError(`Request cannot be constructed from http://${secret}`));
  for (const upstream of [`http://${secret}`, `ftp://${secret}`, 'http://user:s3cret@:k3y', transport, [`http://${secret}`, transport]]) {
    const error = await createProvider({ ...network, upstream }).then(() => assert.fail('connected'), (reason) => reason);
    assert.ok(!/s3cret|k3y/.test(shown(error)), shown(error));
  }
});

test('an error of an upstream does not name the key in its address', async () => {
  let refused = false;
  const key = 'k3y0123456789abcdef';
  const refusal = ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32005, message: `project ${key} is over quota` } });
  const refusing = (body) => {
    const calls = JSON.parse(body);
    return JSON.stringify(Array.isArray(calls) ? calls.map(refusal) : refusal(calls));
  };
  const served = await serveChain(3, undefined, (transport) => async (body) => (refused ? refusing(body) : transport(body)));
  try {
    const provider = await createProvider({ ...served.options, upstream: `${served.url}/changed/${key}`, store: null });
    refused = true;
    const error = await provider.request({ method: 'eth_getBalance', params: [`0x${'ab'.repeat(20)}`, 'latest'] }).catch((reason) => reason);
    assert.match(error.message, /project \.\.\. is over quota/);
    assert.ok(!shown(error).includes(key), shown(error));
    provider.close();
  } finally {
    await served.close();
  }
});

test('an upstream with a user and a password is reached, and named without them', async () => {
  const given = [];
  const served = await serveChain(3, async ({ headers }) => {
    given.push(headers.authorization);
    return headers.authorization ? undefined : [401];
  });
  try {
    const upstream = served.url.replace('//', '//user:s3cret@');
    const provider = await createProvider({ ...served.options, upstream, store: null });
    assert.equal(await provider.request({ method: 'eth_blockNumber' }), '0x3');
    const upstreams = JSON.stringify(await provider.request({ method: 'rootlight_upstreams' }));
    assert.ok(!upstreams.includes('s3cret') && upstreams.includes(new URL(served.url).host), upstreams);
    assert.deepEqual([...new Set(given)], [`Basic ${btoa('user:s3cret')}`]);
    provider.close();
  } finally {
    await served.close();
  }
});
