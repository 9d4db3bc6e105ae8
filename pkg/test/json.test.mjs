// How often a request and its answer are read and written as JSON outside the module, and what the module tells instead.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { openChain } from '../dev-module.js';
import { newLife } from '../life.js';
import { withLight } from './lib/light-client.mjs';
import { until } from './lib/wait.mjs';

/** The numbers of calls of JSON.parse and JSON.stringify while some work runs. */
async function counted(t, work) {
  const mocks = ['parse', 'stringify'].map((name) => t.mock.method(JSON, name));
  try {
    await work();
    return mocks.map(({ mock }) => mock.callCount());
  } finally {
    for (const { mock } of mocks) mock.restore();
  }
}

/** A request, and how often its answer is read: those with a hexadecimal result are not JSON to read. */
const REQUESTS = [
  [{ method: 'eth_getBlockByNumber', params: ['0x1', true] }, 1],
  [{ method: 'eth_newBlockFilter', params: [] }, 0],
  [{ method: 'eth_chainId', params: [] }, 0],
  [{ method: 'eth_getBalance', params: ['0x1'] }, 1],
];

test('a provider writes each request once and reads each answer at most once', async (t) => {
  const chain = await createDevChain({ blockTime: 'manual' });
  await chain.request({ method: 'evm_mine', params: [] });
  for (const [call, reads] of REQUESTS) {
    assert.deepEqual(await counted(t, () => chain.request(call).catch(() => {})), [reads, 1], call.method);
  }
  chain.close();
});

test('a light client that has its facts does so too', (t) =>
  withLight({ pollSeconds: 60 }, async ({ light }) => {
    for (const [call, reads] of REQUESTS) {
      // Its upstream is in this process, and reads and writes what is fetched.
      await light.request(call).catch(() => {});
      assert.deepEqual(await counted(t, () => light.request(call).catch(() => {})), [reads, 1], call.method);
    }
  }));

test('a worker reads neither requests nor answers of its pages', async (t) => {
  const { serve } = await import('../host.js');
  const heard = [];
  const open = async () => ({
    methods: { eth_newBlockFilter: { endedBy: 'eth_uninstallFilter' } },
    send: (text, quiet, method, tell) => {
      heard.push(method);
      tell('0x7', method === 'eth_newBlockFilter');
      return '{"jsonrpc":"2.0","id":1,"result":"0x7"}';
    },
    takeChanged: () => false,
  });
  globalThis.onconnect = null;
  serve({ client: open });
  const { port1: page, port2 } = new MessageChannel();
  globalThis.onconnect({ ports: [port2] });
  const seen = [];
  page.onmessage = ({ data }) => seen.push(data.type);
  page.postMessage({ type: 'open', kind: 'client', options: '{}' });
  await until(() => seen.includes('opened'), 'the client');
  const text = '{"jsonrpc":"2.0","id":1,"method":"eth_newBlockFilter","params":[]}';
  const calls = await counted(t, async () => {
    for (const method of ['eth_newBlockFilter', 'eth_uninstallFilter', 'eth_blockNumber']) page.postMessage({ type: 'ask', id: 1, method, text });
    await until(() => seen.filter((type) => type === 'answer').length === 3, 'the answers');
  });
  page.close();
  delete globalThis.onconnect;
  assert.deepEqual([calls, heard.length], [[0, 0], 3]);
});

test('the module tells which filters and subscriptions a request makes and ends', async () => {
  const life = newLife();
  const link = await openChain(life, {});
  const told = [];
  const ask = (method, ...params) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    return JSON.parse(link.send(text, false, method, (...effect) => told.push(effect))).result;
  };
  const [filter, subscription] = [ask('eth_newBlockFilter'), ask('eth_subscribe', 'newHeads')];
  ask('eth_blockNumber');
  for (let times = 0; times < 2; times += 1) ask('eth_uninstallFilter', filter);
  ask('eth_unsubscribe', subscription);
  // The last value says whether it is a subscription.
  assert.deepEqual(told, [[filter, true, false], [subscription, true, true], [filter, false, false], [subscription, false, true]]);
  life.end();
});
