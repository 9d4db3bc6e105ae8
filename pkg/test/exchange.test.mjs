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
import { until } from './lib/wait.mjs';

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Addresses that no other request names. */
const holder = (number) => `0x${'ab'.repeat(19)}${number.toString(16).padStart(2, '0')}`;

/** A client of a served chain, each of whose upstreams is `[await wrap(body)] ?? the chain's response`. */
async function withUpstreams(wraps, work) {
  const served = await serveChain(3);
  const post = async (body) => new Uint8Array(await (await fetch(served.url, { method: 'POST', body })).arrayBuffer());
  const upstreams = wraps.map((wrap) => async (body) => (await wrap(body)) ?? post(body));
  const provider = await createProvider({ ...served.options, upstream: undefined, upstreams, store: null, pollSeconds: 0.05 });
  try {
    await work({ served, provider, ask: (method, ...params) => provider.request({ method, params }) });
  } finally {
    provider.close();
    await served.close();
  }
}

test('four exchanges of callers run at once, and synchronization does not wait for them', () => {
  let [open, under, most] = [undefined, 0, 0];
  const opened = new Promise((resolve) => (open = resolve));
  const wait = async (body) => {
    if (!body.includes(holder(0).slice(0, -2))) return;
    most = Math.max(most, (under += 1));
    await opened;
    under -= 1;
  };
  return withUpstreams([wait], async ({ served, ask }) => {
    const asked = Array.from({ length: 9 }, (_, number) => ask('eth_getBalance', holder(number), 'latest'));
    await until(() => under === 4, 'the exchanges');
    await served.ask('evm_mine');
    await until(async () => (await ask('eth_blockNumber')) === '0x4', 'the new block');
    open();
    assert.deepEqual(await Promise.all(asked), asked.map(() => '0x0'));
    assert.equal(most, 4);
  });
});

test('an upstream that swallows transactions for long is asked further', () => {
  let [swallowed, refuses] = [0, false];
  const end = new AbortController();
  const isSent = (body) => body.includes('eth_sendRawTransaction');
  const quick = async () => {
    if (refuses) throw new Error('down');
  };
  const slow = async (body) => {
    if (!isSent(body)) return;
    swallowed += 1;
    await new Promise((resolve) => end.signal.addEventListener('abort', resolve));
  };
  return withUpstreams([quick, slow], async ({ served, ask }) => {
    const [from, to] = await served.ask('eth_accounts');
    const send = async (nonce) => {
      const raw = await served.ask('eth_signTransaction', { from, to, nonce: `0x${nonce}`, gas: '0x5208', gasPrice: '0x3b9aca00', value: '0x1' });
      return ask('eth_sendRawTransaction', raw);
    };
    await Promise.all([0, 1, 2, 3].map(send));
    assert.equal(swallowed, 4);
    refuses = true;
    assert.equal(await ask('eth_getBalance', holder(0), 'latest'), '0x0');
    end.abort();
  });
});

test('synchronization waits for space in the store, requests of callers do not', async () => {
  const asked = [];
  let makeSpace;
  const waitForStore = () => new Promise((resolve) => (makeSpace = resolve));
  const exchange = exchangeOver(async (body) => (asked.push(body), new Uint8Array(1)), newLife(), waitForStore);
  void exchange('synchronization', true);
  void exchange('question', false);
  await settled();
  assert.deepEqual(asked, ['question']);
  makeSpace();
  await settled();
  assert.deepEqual(asked, ['question', 'synchronization']);
});

test('a failed exchange gives the reason', async () => {
  const outcomes = [
    [async () => Promise.reject(new Error('down')), 'down'],
    [() => { throw new Error('at once'); }, 'at once'],
    [async () => 'text', 'the transport did not return a Uint8Array'],
    [async () => Promise.reject(undefined), 'unknown failure'],
    [async () => Promise.reject(Object.assign(new Error('busy'), { retryAfter: 3 })), 3],
    [async () => Promise.reject(Object.assign(new Error('busy'), { retryAfter: null })), NaN],
  ];
  for (const [transport, reason] of outcomes) {
    assert.deepEqual(await exchangeOver(transport, newLife())('', false), reason);
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
  assert.equal(await exchangeOver(async () => bytes, newLife())('', false), bytes);
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
  // A text without anything to mask stays as it is, also if it is no JSON.
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
