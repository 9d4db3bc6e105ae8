// Events of the built package's providers, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { withEvents } from '../events.js';
import { faults, scenario } from './lib/events-scenario.mjs';
import { inPage } from './lib/in-page.mjs';
import { LIMIT } from './lib/wait.mjs';

/** Number of checks in the scenario. */
const CHECKS = 25;

/** Number of checks in the scenario with faults. */
const FAULT_CHECKS = 14;

test('blocks, logs and a reorganisation are emitted in Node.js', async () => {
  assert.equal(await scenario(await import('../index.js'), await import('../dev.js')), CHECKS);
});

test('blocks, logs and a reorganisation are emitted in a page', async () => {
  const work = async () => {
    const { scenario } = await import('/test/lib/events-scenario.mjs');
    return scenario(await import('/index.js'), await import('/dev.js'));
  };
  assert.equal(await inPage((run) => run(work)), CHECKS);
});

test('a subscription that hangs, is closed or cannot be copied stops no other in Node.js', async () => {
  assert.equal(await faults(await import('../index.js'), await import('../dev.js')), FAULT_CHECKS);
});

test('a subscription that hangs, is closed or cannot be copied stops no other in a page', async () => {
  const work = async () => {
    const { faults } = await import('/test/lib/events-scenario.mjs');
    return faults(await import('/index.js'), await import('/dev.js'));
  };
  assert.equal(await inPage((run) => run(work)), FAULT_CHECKS);
});

/** Methods after which the module reports a change. */
const SENDS = ['eth_sendTransaction', 'evm_mine'];

/** A module whose answers the test determines; `news` holds the new events of each subscription. */
function module(interval = 1e6) {
  const state = { next: 1, news: new Map(), asked: [], calls: [], head: 5 };
  const ask = async ({ method, params }) => {
    if (method === 'eth_blockNumber') return `0x${state.head.toString(16)}`;
    state.asked.push(method);
    if (SENDS.includes(method)) {
      state.changed = true;
      return 'sent';
    }
    if (method === 'eth_subscribe') {
      if (state.refusal) throw state.refusal;
      state.calls.push(params);
      const id = `0x${state.next++}`;
      state.news.set(id, []);
      return id;
    }
    if (method === 'eth_unsubscribe') return state.news.delete(params[0]);
    const news = state.news.get(params?.[0]);
    if (!news) throw Object.assign(new Error('filter not found'), { code: -32000 });
    if (news.failure) throw news.failure;
    return news.splice(0);
  };
  const takeChanged = () => {
    const { changed } = state;
    state.changed = false;
    return changed;
  };
  const events = withEvents(async (call) => ({ result: await ask(call) }), interval, takeChanged);
  const subscribe = (...params) => events.provider.request({ method: 'eth_subscribe', params });
  const told = [];
  events.provider.on('message', ({ data }) => told.push(data.result));
  return { state, events, told, subscribe };
}

/** Resolves when all pending work has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a subscription that the module has dropped is renewed under the same id', async () => {
  const { state, events, subscribe } = module();
  const told = [];
  events.provider.on('message', ({ data }) => told.push(data));
  const subscription = await subscribe('newHeads');
  state.news.clear();
  await events.changed();
  state.news.get('0x2').push('a');
  await events.changed();
  assert.deepEqual(told, [{ subscription, result: 'a' }]);
  assert.equal(await events.provider.request({ method: 'eth_unsubscribe', params: [subscription] }), true);
  assert.equal(state.news.size, 0);
  events.close();
});

test('the gap of a renewed subscription is reported', async () => {
  const { state, events, subscribe } = module();
  const gaps = [];
  events.provider.on('message', ({ type, data }) => type === 'rootlight_gap' && gaps.push(data));
  const subscription = await subscribe('newHeads');
  const lose = async (head) => {
    state.news.clear();
    state.head = head;
    await events.changed();
  };
  await lose(5);
  assert.deepEqual(gaps, [], 'there was no new block');
  state.head = 6;
  await events.changed();
  state.refusal = new Error('no proof');
  await lose(7);
  assert.deepEqual(gaps, []);
  delete state.refusal;
  await lose(20);
  assert.deepEqual(gaps, [{ subscription, fromBlock: '0x7', toBlock: '0x14' }]);
  await lose(21);
  assert.deepEqual(gaps[1], { subscription, fromBlock: '0x15', toBlock: '0x15' });
  events.close();
});

test('a poll that hangs does not delay other subscriptions, and its events are emitted later', async () => {
  const { state, events, told, subscribe } = module();
  const [stuck, other] = [await subscribe('logs', {}), await subscribe('newHeads')];
  let go;
  const { splice } = Array.prototype;
  state.news.get(stuck).splice = function (...given) {
    return new Promise((resolve) => (go = resolve)).then(() => splice.apply(this, given));
  };
  state.news.get(stuck).push('late');
  for (const news of ['a', 'b']) {
    state.news.get(other).push(news);
    void events.changed();
    await settled();
  }
  assert.deepEqual(told, ['a', 'b']);
  assert.equal(state.asked.filter((method) => method === 'eth_getFilterChanges').length, 3);
  go();
  await settled();
  assert.deepEqual(told, ['a', 'b', 'late']);
  events.close();
});

test('parameters that cannot be copied are refused before any request', async () => {
  const { state, events, subscribe } = module();
  await assert.rejects(subscribe('logs', { address: () => {} }), { code: -32602, message: /cannot be copied/ });
  assert.deepEqual(state.asked, []);
  events.close();
});

test('a provider that is closed while it subscribes has no subscription', async (t) => {
  const timers = t.mock.method(globalThis, 'setInterval', () => {});
  const { events, subscribe } = module();
  const under = subscribe('newHeads');
  events.close();
  await assert.rejects(under, { code: 4900 });
  assert.equal(timers.mock.callCount(), 0);
});

test('events of a failed poll are emitted later, and a listener that throws does not affect others', async (t) => {
  t.mock.method(console, 'error', () => {});
  const { state, events, subscribe } = module();
  const told = [];
  events.provider.on('message', () => {
    throw new Error('mine');
  });
  events.provider.on('message', ({ data }) => told.push(data.result));
  const id = await subscribe('logs', {});
  state.news.get(id).push('a');
  state.news.get(id).failure = Object.assign(new Error('no proof'), { code: -32002 });
  await events.changed();
  assert.deepEqual(told, []);
  delete state.news.get(id).failure;
  await Promise.all([events.changed(), events.changed()]);
  assert.deepEqual(told, ['a']);
  assert.equal(console.error.mock.callCount(), 1);
  events.close();
});

test('a subscription that cannot be renewed now is renewed later', async () => {
  const { state, events, told, subscribe } = module();
  await subscribe('newHeads');
  state.news.clear();
  state.refusal = new Error('no proof');
  await events.changed();
  delete state.refusal;
  await events.changed();
  state.news.get('0x2').push('a');
  await events.changed();
  assert.deepEqual(told, ['a']);
  events.close();
});

test('a subscription is renewed with its first parameters even if the caller changed them', async () => {
  const { state, events, subscribe } = module();
  const filter = { address: '0x1' };
  await subscribe('logs', filter);
  filter.address = '0x2';
  state.news.clear();
  await events.changed();
  assert.deepEqual(state.calls[1], ['logs', { address: '0x1' }]);
  events.close();
});

test('an ended subscription emits nothing and is not renewed', async () => {
  const { state, events, told, subscribe } = module();
  const [first, second] = [await subscribe('newHeads'), await subscribe('newHeads')];
  const end = (id) => events.provider.request({ method: 'eth_unsubscribe', params: [id] });
  events.provider.on('message', () => void end(first));
  state.news.get(first).push('a', 'b');
  await events.changed();
  assert.deepEqual(told, ['a']);
  state.news.delete(second);
  const look = events.changed();
  await end(second);
  await look;
  assert.deepEqual([state.calls.length, state.news.size], [2, 0]);
  events.close();
});

test('polls run one after the other, and a change during a poll causes another', async () => {
  const { state, events, told, subscribe } = module();
  const id = await subscribe('newHeads');
  state.asked.length = 0;
  const looks = [events.changed(), events.changed(), events.changed()];
  assert.equal(state.asked.length, 1);
  state.news.get(id).push('a');
  await Promise.all(looks);
  assert.deepEqual(told, ['a']);
  assert.equal(state.asked.length, 2);
  events.close();
});

test('a request that may change the chain is followed by a poll at once', async () => {
  const { state, events, subscribe } = module();
  await subscribe('newHeads');
  for (const method of SENDS) {
    state.asked.length = 0;
    assert.equal(await events.provider.request({ method }), 'sent');
    await settled();
    assert.deepEqual(state.asked, [method, 'eth_getFilterChanges']);
  }
  state.asked.length = 0;
  // A filter may have the id of a subscription.
  await events.provider.request({ method: 'eth_getFilterChanges', params: ['0x1'] });
  await settled();
  assert.deepEqual(state.asked, ['eth_getFilterChanges']);
  events.close();
});

test('polls at intervals start with the first subscription and end with the last', async (t) => {
  const timers = new Set();
  t.mock.method(globalThis, 'setInterval', (...timer) => {
    timers.add(timer);
    return timer;
  });
  t.mock.method(globalThis, 'clearInterval', (timer) => timers.delete(timer));
  const { state, events, subscribe } = module(1_000);
  const looks = async () => {
    state.asked.length = 0;
    for (const [work, interval] of timers) {
      assert.equal(interval, 1_000);
      await work();
    }
    return state.asked.length;
  };
  const ids = [await subscribe('newHeads'), await subscribe('newHeads')];
  assert.equal(await looks(), 2);
  for (const [place, id] of ids.entries()) {
    await events.provider.request({ method: 'eth_unsubscribe', params: [id] });
    assert.equal(await looks(), 1 - place);
  }
  assert.equal(timers.size, 0);
  await subscribe('newHeads');
  assert.equal(await looks(), 1);
  events.close();
  assert.equal(timers.size, 0);
});

test('each call removes a listener once, and an unknown listener is ignored', async () => {
  const { state, events, told, subscribe } = module();
  const { provider } = events;
  const id = await subscribe('newHeads');
  const more = [];
  const listener = ({ data }) => more.push(data.result);
  const stranger = () => {};
  assert.equal(provider.on('message', listener).on('message', listener), provider);
  assert.equal(provider.removeListener('message', listener).removeListener('message', stranger), provider);
  provider.removeListener('accountsChanged', stranger);
  state.news.get(id).push('a');
  await events.changed();
  assert.deepEqual([told, more], [['a'], ['a']]);
  events.close();
});

test('an invalid call is passed to the module, which refuses it', async () => {
  for (const call of [undefined, null, {}, { method: 'eth_unsubscribe' }]) {
    const events = withEvents(async (given) => Promise.reject(new Error(`refused ${given}`)), 1e6, () => false);
    await assert.rejects(events.provider.request(call), /refused/);
  }
});

test('providers and transports that are not closed do not keep Node.js running', () => {
  const run = async () => {
    const { createProvider, createDevChain, webSocketTransport } = await import('./dev.js');
    const { transportTo } = await import('./test/lib/chain-transport.mjs');
    const { FakeSocket } = await import('./test/lib/fake-socket.mjs');
    const running = setInterval(() => {}, 1_000);
    const chain = await createDevChain();
    const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
    const light = await createProvider({ network: 'regtest', upstream: transportTo(chain), checkpoint: { number: 0, hash } });
    for (const provider of [chain, light]) await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
    webSocketTransport('ws://node.example', { WebSocket: FakeSocket })('{"id":1}');
    clearInterval(running);
  };
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const { signal, status, stderr } = spawnSync(process.execPath, ['--eval', `(${run})()`], { cwd, ...LIMIT });
  assert.deepEqual([signal, status], [null, 0], String(stderr));
});
