// Clients and chains in worker threads of Node.js, and what an import of the package does.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createDevChain } from '../dev.js';
import { createProvider } from '../index.js';
import { serveChain } from './lib/chain-server.mjs';
import { runScript } from './lib/run-script.mjs';
import { LIMIT, until } from './lib/wait.mjs';

async function withServed(work) {
  const served = await serveChain(5);
  try {
    await work(served);
  } finally {
    await served.close();
  }
}

test('a client in a worker thread answers and emits events', LIMIT, () =>
  withServed(async (served) => {
    const light = await createProvider({ ...served.options, worker: 'dedicated', pollSeconds: 0.1 });
    const told = [];
    light.on('message', ({ data }) => told.push(data.result.number));
    await light.request({ method: 'eth_subscribe', params: ['newHeads'] });
    await served.ask('evm_mine');
    await until(() => told.length > 0, 'a new head');
    assert.deepEqual(told, ['0x6']);
    await assert.rejects(light.request({ method: 'debug_traceCall' }), { code: -32601, message: /debug_traceCall.*the package does not have it/ });
    light.close();
    await assert.rejects(light.request({ method: 'eth_chainId' }), { code: 4900 });
  }));

test('a thread that ends is an error of its client', LIMIT, () =>
  withServed(async (served) => {
    let made;
    const worker = () => (made = new Worker(new URL('../worker.js', import.meta.url)));
    const light = await createProvider({ ...served.options, worker });
    const told = [];
    light.on('disconnect', ({ code }) => told.push(code));
    await made.terminate();
    await until(() => told.length > 0, 'the event disconnect');
    assert.deepEqual(told, [4900]);
    await assert.rejects(light.request({ method: 'eth_chainId' }), { code: 4900, message: /create a new provider/ });
    await assert.rejects(createProvider({ ...served.options, worker: () => { throw new Error('no memory'); } }), /cannot be started: no memory/);
  }));

test('a development chain in a worker thread', LIMIT, async () => {
  const chain = await createDevChain({ worker: 'dedicated', balance: 7 });
  const [account] = await chain.request({ method: 'eth_requestAccounts' });
  assert.equal(BigInt(await chain.request({ method: 'eth_getBalance', params: [account, 'latest'] })), 7n * 10n ** 18n);
  const told = [];
  chain.on('message', ({ data }) => told.push(data.result.number));
  await chain.request({ method: 'eth_subscribe', params: ['newHeads'] });
  await chain.request({ method: 'evm_mine' });
  await until(() => told.length > 0, 'a new head');
  assert.deepEqual(told, ['0x1']);
  chain.close();
  await assert.rejects(createDevChain({ worker: 'shared' }), { code: -32600, message: /belongs to one page/ });
  await assert.rejects(createDevChain({ worker: 'dedicated', accounts: 1e6 }), { code: -32600, message: /^accounts: / });
});

test('a callback that throws stops nothing', LIMIT, (t) =>
  withServed(async (served) => {
    const reported = t.mock.method(console, 'error', () => {});
    const onProgress = () => {
      throw new Error('mine');
    };
    const light = await createProvider({ ...served.options, worker: 'dedicated', onProgress });
    assert.equal(await light.request({ method: 'eth_blockNumber' }), '0x5');
    assert.ok(reported.mock.callCount() > 0);
    light.close();
  }));

test('a program with a client in a worker thread prints its answer and ends', LIMIT, () =>
  withServed(async (served) => {
    const text = `
      import { createProvider } from './index.js';
      const provider = await createProvider({ ...JSON.parse(process.argv[1]), worker: 'dedicated' });
      console.log(await provider.request({ method: 'eth_blockNumber' }));
    `;
    assert.deepEqual(await runScript(text, [served.options]), { code: 0, signal: null, stderr: '', stdout: '0x5\n' });
  }));

/** The row of a method that makes a filter. */
const FILTER = { endedBy: 'eth_uninstallFilter' };

test('filters of a page that leaves a shared client end, and those of others stay', LIMIT, async () => {
  const { serve } = await import('../host.js');
  const sent = [];
  const open = async () => ({
    methods: { eth_subscribe: { endedBy: 'eth_unsubscribe' }, eth_newFilter: FILTER, eth_newBlockFilter: FILTER },
    // As a client that has its answers at once.
    send: (text, quiet, asked, heard) => {
      const { method, params } = JSON.parse(text);
      sent.push([method, ...params]);
      const isMade = method.startsWith('eth_new') || method === 'eth_subscribe';
      const id = isMade ? `0x${sent.length}` : params[0];
      if (isMade || method === 'eth_uninstallFilter') heard?.(id, isMade);
      return JSON.stringify({ result: isMade ? id : true });
    },
    takeChanged: () => false,
  });
  globalThis.onconnect = null;
  serve({ client: open });
  const page = () => {
    const { port1, port2 } = new MessageChannel();
    globalThis.onconnect({ ports: [port2] });
    const answers = [];
    const types = [];
    port1.onmessage = ({ data }) => {
      types.push(data.type);
      if (data.type === 'answer') answers.push(data.id);
    };
    port1.postMessage({ type: 'open', kind: 'client', options: '{}' });
    const ask = async (id, method, ...params) => {
      port1.postMessage({ type: 'ask', id, method, text: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
      await until(() => answers.includes(id), method);
    };
    return { port: port1, types, ask };
  };
  const [first, second] = [page(), page()];
  await first.ask(1, 'eth_subscribe', 'newHeads');
  await first.ask(2, 'eth_newFilter', {});
  await first.ask(3, 'eth_newBlockFilter');
  await first.ask(4, 'eth_uninstallFilter', '0x2');
  await second.ask(1, 'eth_newBlockFilter');
  sent.length = 0;
  first.port.postMessage({ type: 'close' });
  await until(() => sent.length >= 2, 'the end of the filters');
  assert.deepEqual(sent, [['eth_unsubscribe', '0x1'], ['eth_uninstallFilter', '0x3']]);
  await until(() => first.types.includes('closed'), 'the answer to the page that leaves');
  await second.ask(2, 'eth_blockNumber');
  for (const { port } of [first, second]) port.close();
  delete globalThis.onconnect;
});

test('an import touches nothing of a page and starts nothing', LIMIT, async () => {
  const text = `
    for (const name of ['window', 'document', 'navigator', 'indexedDB', 'Worker', 'SharedWorker', 'localStorage', 'fetch']) {
      Object.defineProperty(globalThis, name, { get() { throw new Error('the import reads ' + name); } });
    }
    const before = Object.getOwnPropertyNames(globalThis).length;
    for (const file of ['index', 'dev', 'verify']) await import('./' + file + '.js');
    console.log(Object.getOwnPropertyNames(globalThis).length - before);
  `;
  assert.deepEqual(await runScript(text), { code: 0, signal: null, stderr: '', stdout: '0\n' });
});

test('the names of shared workers contain the version, so that pages of different versions do not share one', () => {
  const read = (file) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  const { version } = JSON.parse(read('package.json'));
  for (const [file, name] of [['index.js', 'rootlight'], ['dev.js', 'rootlight-dev']]) assert.ok(read(file).includes(`name: '${name}-${version}'`), file);
});
