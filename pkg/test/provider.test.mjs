// Events, signals and changes of upstreams of a provider, in Node.js. Its upstream is a development chain in the same process.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createDevChain, load } from '../dev.js';
import { instantiate } from '../dist/rootlight_dev.js';
import { createProvider } from '../index.js';
import { instance } from '../instance.js';
import { newLife } from '../life.js';
import { transportTo } from './lib/chain-transport.mjs';
import { lightClient, withLight } from './lib/light-client.mjs';
import { lying } from './lib/lying.mjs';
import { keepRunning } from './lib/running.mjs';
import { pause, until } from './lib/wait.mjs';

test('connect is emitted with the chain to code that listens after the provider is made', () =>
  withLight({}, async ({ light, chain }) => {
    const told = [];
    light.on('connect', (event) => told.push(event));
    await until(() => told.length > 0, 'the event connect');
    assert.deepEqual(told, [{ chainId: '0x21' }]);
    const other = await createDevChain();
    other.on('connect', (event) => told.push(event));
    await until(() => told.length > 1, 'the event connect of a development chain');
    assert.deepEqual(told[1], { chainId: '0x21' });
    other.close();
  }));

test('progress is emitted with each new head', () =>
  withLight({}, async ({ light, chain }) => {
    const told = [];
    light.on('progress', (event) => told.push(event));
    await chain.request({ method: 'evm_mine' });
    await until(() => told.some(({ currentBlock }) => currentBlock === 4), 'progress to block 4');
    assert.deepEqual(Object.keys(told[0]), ['startingBlock', 'currentBlock', 'highestBlock', 'headersPerSecond', 'secondsLeft']);
  }));

/** The events `verification` of a provider, in order. */
function verifications(provider) {
  const told = [];
  provider.on('verification', (event) => told.push(event));
  return async (count) => {
    await until(() => told.length >= count, `${count} events`);
    return told;
  };
}

test('each answer is followed by an event that says what it rests on', () =>
  withLight({}, async ({ light, ask, chain }) => {
    const events = verifications(light);
    const [rich] = await chain.request({ method: 'eth_accounts' });
    await ask('eth_chainId');
    await ask('eth_getBalance', rich, '0x1');
    await ask('eth_getTransactionByHash', `0x${'ab'.repeat(32)}`);
    const told = await events(3);
    const of = (method) => told.find((event) => event.method === method);
    const [constant, balance, absent] = ['eth_chainId', 'eth_getBalance', 'eth_getTransactionByHash'].map(of);
    assert.deepEqual(constant, { method: 'eth_chainId', level: 'local', depth: null, evidence: null, caught: [] });
    assert.deepEqual([balance.method, balance.level, balance.depth], ['eth_getBalance', 'verified', 2]);
    assert.deepEqual([balance.evidence.blockNumber, balance.evidence.origin, balance.evidence.canonical], ['0x1', 'mined', true]);
    assert.deepEqual([absent.level, absent.depth], ['unproven-absence', null]);
  }));

test('evidence is that of the answer\'s own block, and null if the answer names none', () =>
  withLight({ blocks: 5 }, async ({ light, ask, chain }) => {
    const [from] = await chain.request({ method: 'eth_accounts' });
    const hash = await chain.request({ method: 'eth_sendTransaction', params: [{ from, to: from, value: '0x1' }] });
    for (let blocks = 0; blocks < 2; blocks += 1) await chain.request({ method: 'evm_mine' });
    await until(async () => (await ask('eth_blockNumber')) === '0x7', 'block 7');
    const { hash: second } = await ask('eth_getBlockByNumber', '0x2', false);
    const events = verifications(light);
    const expected = [
      ['rsk_getRawBlockHeaderByNumber', ['0x1'], '0x1'],
      ['rsk_getRawBlockHeaderByHash', [second], '0x2'],
      ['eth_getBlockByNumber', ['0x3', false], '0x3'],
      ['eth_getBlockByNumber', ['latest', false], '0x7'],
      ['eth_getTransactionReceipt', [hash], '0x6'],
      ['eth_getBalance', [from, 'latest'], '0x7'],
      ['eth_blockNumber', [], '0x7'],
      ['rsk_getRawTransactionReceiptByHash', [hash], undefined],
      ['eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x2' }], undefined],
      ['eth_newBlockFilter', [], undefined],
    ];
    for (const [place, [method, params, block]] of expected.entries()) {
      await ask(method, ...params);
      const { level, depth, evidence } = (await events(place + 1))[place];
      const found = { level, depth, block: evidence?.blockNumber };
      assert.deepEqual(found, { level: 'verified', depth: block ? 7 - Number(block) : null, block }, `${method} ${params}`);
    }
  }));

test('an answer about the newest block has no evidence if that has become another one meanwhile', () => {
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  const slow = (transport) => async (body) => {
    if (/getProof|getWitness/.test(body)) await gate;
    return transport(body);
  };
  return withLight({ wrap: slow }, async ({ light, ask, chain }) => {
    const events = verifications(light);
    const [rich] = await chain.request({ method: 'eth_accounts' });
    const asked = ask('eth_getBalance', rich, 'latest');
    await chain.request({ method: 'evm_mine' });
    await until(async () => (await light.request({ method: 'rootlight_syncStatus' })).currentBlock === '0x4', 'block 4');
    go();
    await asked;
    const told = await until(async () => (await events(1)).find(({ method }) => method === 'eth_getBalance'), 'the event');
    assert.deepEqual([told.level, told.depth, told.evidence], ['verified', null, null]);
  });
});

test('nothing is asked for events that no listener wants', async (t) => {
  const asked = [];
  await withLight({}, async ({ ask }) => {
    t.mock.method(JSON, 'stringify', ((real) => function (value, ...more) {
      if (value?.method) asked.push(value.method);
      return real.call(JSON, value, ...more);
    })(JSON.stringify));
    await ask('eth_chainId');
    await pause(20);
    t.mock.restoreAll();
  });
  assert.ok(!asked.includes('rootlight_verification') && !asked.includes('rootlight_upstreams'), String(asked));
});

test('an upstream that lies is named in the event, and the answer is proven by another one', (t) => {
  // Both upstreams respond at once by this clock, so that the first one is asked first.
  t.mock.method(performance, 'now', () => 0);
  return withLight({ wrap: (honest) => [lying(honest), honest] }, async ({ light, ask, chain }) => {
    const events = verifications(light);
    const [, ...accounts] = await chain.request({ method: 'eth_accounts' });
    let count = 0;
    const caught = () => until(async () => {
      const address = accounts[count % accounts.length];
      count += 1;
      assert.equal(await ask('eth_getBalance', address, '0x2'), '0x21e19e0c9bab2400000');
      return (await events(count)).flatMap((event) => event.caught)[0];
    }, 'a lie');
    const { upstream, method, rule } = await caught();
    assert.equal(upstream, 'upstream 0');
    assert.match(method, /getProof|getWitness/);
    assert.ok(rule.length > 0);
    // The same fault is reported once.
    await ask('eth_getBalance', accounts[0], '0x2');
    const all = await events(count + 1);
    assert.equal(all.flatMap((event) => event.caught).filter((record) => record.rule === rule && record.method === method).length, 1);
  });
});

test('an answer that no upstream proves is refused, and the event says so', () =>
  withLight({ wrap: lying }, async ({ light, ask, chain }) => {
    const events = verifications(light);
    const [rich] = await chain.request({ method: 'eth_accounts' });
    await assert.rejects(ask('eth_getBalance', rich, '0x2'), { code: -32002 });
    const [event] = await events(1);
    assert.deepEqual([event.method, event.level, event.error.code], ['eth_getBalance', 'refused', -32002]);
    assert.equal(event.caught[0]?.upstream, 'upstream 0');
  }));

test('the module gives the levels of the method table', async () => {
  const life = newLife();
  const { methods } = await instance(instantiate, await load(), life);
  const known = JSON.parse(methods());
  const table = readFileSync(new URL('../../docs/methods.md', import.meta.url), 'utf8');
  const rows = [...table.matchAll(/^\| (`[^|]+) \|[^|]*\|[^|]*\| (\w+) \|[^|]*\|[^|]*\| ([^|]+) \|/gm)];
  assert.ok(rows.length > 80, `${rows.length} rows`);
  for (const [, names, level, light] of rows) {
    if (light.trim().startsWith('-32')) continue;
    for (const [, name] of names.matchAll(/`(\w[\w.]*)`/g)) if (known[name]) assert.equal(known[name].level, level, name);
  }
  assert.ok(Object.keys(known).length > 80);
  const { eth_call: call, rsk_getRawBlockHeaderByHash: header, eth_subscribe: subscription, eth_newFilter: filter } = known;
  assert.deepEqual([call.block, header.block, subscription.endedBy, filter.endedBy], [1, 0, 'eth_unsubscribe', 'eth_uninstallFilter']);
  life.end();
});

test('a signal ends a request at once, and the provider stays usable', () =>
  withLight({}, async ({ light, ask, chain }) => {
    const reason = new Error('not needed any more');
    const [rich] = await chain.request({ method: 'eth_accounts' });
    const call = { method: 'eth_getBalance', params: [rich, '0x1'] };
    assert.equal(await light.request(call, { signal: AbortSignal.abort(reason) }).catch((error) => error), reason);
    const controller = new AbortController();
    const asked = light.request(call, { signal: controller.signal });
    controller.abort(reason);
    assert.equal(await asked.catch((error) => error), reason);
    assert.equal(await light.request(call, { signal: new AbortController().signal }), '0x21e19e0c9bab2400000');
    assert.equal(await ask('eth_chainId'), '0x21');
  }));

test('a subscription whose request was aborted ends', () =>
  withLight({}, async ({ light, chain }) => {
    const told = [];
    light.on('message', (event) => told.push(event));
    const controller = new AbortController();
    const asked = light.request({ method: 'eth_subscribe', params: ['newHeads'] }, { signal: controller.signal });
    controller.abort();
    await assert.rejects(asked, { name: 'AbortError' });
    await chain.request({ method: 'evm_mine' });
    await until(async () => (await light.request({ method: 'eth_blockNumber' })) === '0x4', 'block 4');
    await pause(50);
    assert.deepEqual(told, []);
  }));

test('upstreams are replaced without a gap in subscriptions', () =>
  withLight({}, async ({ light, ask, chain, options }) => {
    const heads = [];
    light.on('message', ({ type, data }) => heads.push([type, data.subscription, data.result?.number]));
    const subscription = await ask('eth_subscribe', 'newHeads');
    const counted = { count: 0 };
    const next = (body) => {
      counted.count += 1;
      return options.upstreams(body);
    };
    await light.setUpstreams([next]);
    assert.ok(counted.count > 0);
    const before = counted.count;
    await chain.request({ method: 'evm_mine' });
    await until(() => heads.length > 0, 'the next head');
    assert.deepEqual(heads, [['eth_subscription', subscription, '0x4']]);
    assert.ok(counted.count > before);
    assert.equal((await ask('rootlight_upstreams')).length, 1);
    assert.equal(await ask('eth_unsubscribe', subscription), true);
  }));

/** The events `connect` and `disconnect` of a provider, in order. */
function connections(provider) {
  const told = [];
  provider.on('connect', ({ chainId }) => told.push(['connect', chainId]));
  // Either upstream may be the last to fail.
  provider.on('disconnect', ({ code, message }) => told.push(['disconnect', code, message.replace(/upstream [01]/, 'upstream #')]));
  return async (count) => {
    await until(() => told.length >= count, `${count} events`);
    return told;
  };
}

const CONNECT = ['connect', '0x21'];
const LOST = ['disconnect', 1013, 'no upstream answers: upstream #: connection refused'];

test('a provider is disconnected while no upstream answers, and connected when one does again', () => {
  const down = [false, false];
  const failing = (transport, index) => (body) => (down[index] ? Promise.reject(new Error('connection refused')) : transport(body));
  return withLight({ wrap: (transport) => [0, 1].map((index) => failing(transport, index)) }, async ({ light, ask, chain }) => {
    const told = connections(light);
    await told(1);
    // The other upstream still answers.
    down[0] = true;
    await chain.request({ method: 'evm_mine' });
    await until(async () => (await ask('eth_blockNumber')) === '0x4', 'block 4');
    await pause(1_500);
    assert.deepEqual(await told(1), [CONNECT]);
    down[1] = true;
    assert.deepEqual(await told(2), [CONNECT, LOST]);
    // Requests about known facts are still answered.
    assert.equal(await ask('eth_blockNumber'), '0x4');
    down[1] = false;
    assert.deepEqual(await told(3), [CONNECT, LOST, CONNECT]);
    light.close();
    assert.deepEqual((await told(4)).at(-1).slice(0, 2), ['disconnect', 4900]);
  });
});

test('new upstreams connect a provider again whose former ones do not answer', () => {
  let down = false;
  const wrap = (transport) => (body) => (down ? Promise.reject(new Error('connection refused')) : transport(body));
  return withLight({ wrap }, async ({ light, chain }) => {
    const told = connections(light);
    await told(1);
    down = true;
    await told(2);
    await light.setUpstreams(transportTo(chain));
    assert.deepEqual(await told(3), [CONNECT, LOST, CONNECT]);
    await pause(50);
    assert.equal((await told(3)).length, 3);
  });
});

test('a node that asks for a pause, and one lost response, disconnect nothing', async () => {
  const { connection } = await import('../exchange.js');
  const told = [];
  const line = connection(['a', 'b'], (reason) => told.push(reason));
  const [first, second] = [line(0), line(1)];
  for (let count = 0; count < 3; count += 1) {
    first('refused');
    second('refused');
  }
  await pause(1_100);
  first();
  second('refused');
  assert.deepEqual(told, []);
  first('silent');
  await pause(1_100);
  first('silent');
  assert.deepEqual(told, ['a: silent']);
  second('refused');
  second();
  first('silent');
  assert.deepEqual(told, ['a: silent', undefined]);
});

test('upstreams that lead nowhere are refused, and the former ones stay', () =>
  withLight({}, async ({ light, ask }) => {
    const down = async () => Promise.reject(new Error('connection refused'));
    await assert.rejects(light.setUpstreams([down]), { code: 4900, message: /connection refused/ });
    await assert.rejects(light.setUpstreams([]), { code: -32600, message: /at least one/ });
    await assert.rejects(light.setUpstreams('http://['), { name: 'TypeError', message: /neither a function nor an address/ });
    const hanging = light.setUpstreams([() => new Promise(() => {})], { signal: AbortSignal.timeout(50) });
    await assert.rejects(hanging, { name: 'TimeoutError' });
    assert.equal(await ask('eth_blockNumber'), '0x3');
  }));

test('requests that were pending when the upstreams changed are still answered', () =>
  withLight({}, async ({ light, ask, chain, options }) => {
    const [, account] = await chain.request({ method: 'eth_accounts' });
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    const slow = async (body) => {
      if (/getProof|getWitness/.test(body)) await gate;
      return options.upstreams(body);
    };
    await light.setUpstreams([slow]);
    const asked = ask('eth_getBalance', account, '0x1');
    await light.setUpstreams(options.upstreams);
    go();
    assert.equal(await asked, '0x21e19e0c9bab2400000');
  }));

test('a provider that is closed while its upstreams change stays closed', () =>
  withLight({}, async ({ light }) => {
    const changing = light.setUpstreams([() => new Promise(() => {})]);
    await pause(10);
    light.close();
    await assert.rejects(changing, { code: 4900 });
    await assert.rejects(light.setUpstreams([]), { code: 4900 });
    await assert.rejects(light.request({ method: 'eth_chainId' }), { code: 4900 });
  }));

test('a development chain can be given up by a signal while it starts', async () => {
  await assert.rejects(createDevChain({ signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('the former names of options still work', () =>
  keepRunning(async () => {
    const { chain, options, light, close } = await lightClient();
    const kept = new Map();
    const store = { get: (key) => kept.get(key), put: (key, value) => void kept.set(key, value) };
    const { upstreams, storage, ...rest } = options;
    const former = await createProvider({ ...rest, upstream: transportTo(chain), store });
    await until(() => kept.size > 0, 'stored headers');
    former.close();
    close();
    assert.ok(light);
  }));
