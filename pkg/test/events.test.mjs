// Events of the built package's providers, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withEvents } from '../events.js';
import { startBrowser } from './lib/browser.mjs';
import { scenario } from './lib/events-scenario.mjs';
import { servePackage } from './lib/pages.mjs';

/** Things that the scenario finds right. */
const CHECKS = 19;

test('blocks, logs and a reorganisation are told in Node.js', async () => {
  assert.equal(await scenario(await import('../index.js'), await import('../dev.js')), CHECKS);
});

test('they are told in a page', async () => {
  const site = await servePackage();
  const browser = await startBrowser();
  try {
    await browser.open(`${site.url}/test/page.html`);
    const run = async () => {
      const { scenario } = await import('/test/lib/events-scenario.mjs');
      return scenario(await import('/index.js'), await import('/dev.js'));
    };
    assert.equal(await browser.run(run), CHECKS);
  } finally {
    await browser.close();
    await site.close();
  }
});

/** A module of which the test decides what it says. */
function module() {
  const state = { next: 1, news: new Map(), asked: [] };
  const ask = async ({ method, params }) => {
    state.asked.push(method);
    if (method === 'eth_subscribe') {
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
  return { state, events: withEvents(ask, 1e6) };
}

test('a subscription that the module has lost is made again under the same id', async () => {
  const { state, events } = module();
  const told = [];
  events.provider.on('message', ({ data }) => told.push(data));
  const subscription = await events.provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  state.news.clear();
  await events.changed();
  state.news.get('0x2').push('a');
  await events.changed();
  assert.deepEqual(told, [{ subscription, result: 'a' }]);
  assert.equal(await events.provider.request({ method: 'eth_unsubscribe', params: [subscription] }), true);
  assert.equal(state.news.size, 0);
  events.close();
});

test('what fails is told later, and a listener that throws keeps nothing from others', async (t) => {
  t.mock.method(console, 'error', () => {});
  const { state, events } = module();
  const told = [];
  events.provider.on('message', () => {
    throw new Error('mine');
  });
  events.provider.on('message', ({ data }) => told.push(data.result));
  const id = await events.provider.request({ method: 'eth_subscribe', params: ['logs', {}] });
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
