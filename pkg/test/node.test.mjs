// Programs as users of Node.js write them, each in its own process, which only the package keeps running.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveChain } from './lib/chain-server.mjs';
import { runScript } from './lib/run-script.mjs';

/** Runs of one program, because it would end too early only by chance. */
const RUNS = 10;

const SIMPLEST = `
  import { createProvider } from './index.js';
  const provider = await createProvider(JSON.parse(process.argv[1]));
  console.log(await provider.request({ method: 'eth_blockNumber', params: [] }));
  provider.close();
`;

const END = { code: 0, signal: null, stderr: '' };

test('the simplest program prints its answer and ends', async () => {
  // With only the first header to fetch, the client mostly waits.
  for (const [blocks, head] of [[0, '0x0'], [30, '0x1e']]) {
    const served = await serveChain(blocks);
    try {
      for (let run = 0; run < RUNS; run += 1) assert.deepEqual(await runScript(SIMPLEST, [served.options]), { ...END, stdout: `${head}\n` });
    } finally {
      await served.close();
    }
  }
});

test('a program with a slow node, and one that asks for a pause, prints its answer and ends', async () => {
  const slow = await serveChain(5, async () => new Promise((resolve) => setTimeout(resolve, 100)));
  const busy = await serveChain(5, async () => [429, { 'retry-after': '1' }]);
  try {
    const options = { ...slow.options, upstream: [busy.url, slow.url] };
    assert.deepEqual(await runScript(SIMPLEST, [options]), { ...END, stdout: '0x5\n' });
    assert.ok(busy.asked.count > 0);
  } finally {
    await Promise.all([slow.close(), busy.close()]);
  }
});

test('a program whose node is down ends with the reason', async () => {
  const served = await serveChain(0);
  await served.close();
  const { code, stderr } = await runScript(SIMPLEST, [served.options]);
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`${new URL(served.url).origin}: block 0: no response: no program listens there: start the node`));
});

test('a program that closes nothing ends after its last answer', async () => {
  const served = await serveChain(5);
  const text = `
    import { createProvider } from './index.js';
    const provider = await createProvider(JSON.parse(process.argv[1]));
    await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
    console.log(await provider.request({ method: 'eth_getBlockByNumber', params: ['latest', false] }).then(({ number }) => number));
  `;
  try {
    assert.deepEqual(await runScript(text, [served.options]), { ...END, stdout: '0x5\n' });
  } finally {
    await served.close();
  }
});

test('a program with its own transport runs until its answers arrive', async () => {
  const text = `
    import { createProvider, createDevChain } from './dev.js';
    import { transportTo } from './test/lib/chain-transport.mjs';
    const chain = await createDevChain();
    const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
    const ask = transportTo(chain);
    const upstream = (body) => new Promise((resolve) => setTimeout(() => resolve(ask(body)), 20).unref());
    const light = await createProvider({ network: 'regtest', checkpoint: { number: 0, hash }, upstream });
    console.log(await light.request({ method: 'eth_chainId' }));
    light.close();
    chain.close();
  `;
  for (let run = 0; run < RUNS; run += 1) assert.deepEqual(await runScript(text), { ...END, stdout: '0x21\n' });
});

test('pending calls are rejected when a provider is closed', async () => {
  const served = await serveChain(5);
  const text = `
    import { createProvider } from './index.js';
    const options = JSON.parse(process.argv[1]);
    const provider = await createProvider(options);
    const [account] = ['0x' + '11'.repeat(20)];
    const asked = provider.request({ method: 'eth_getBalance', params: [account, 'latest'] });
    provider.close();
    console.log(await asked.catch(({ code }) => code));
  `;
  try {
    assert.deepEqual(await runScript(text, [served.options]), { ...END, stdout: '4900\n' });
  } finally {
    await served.close();
  }
});

test('the memory of sixty clients, one after the other, is freed', async () => {
  const served = await serveChain(5);
  const text = `
    import { createProvider } from './index.js';
    import { pause, until } from './test/lib/wait.mjs';
    const options = JSON.parse(process.argv[1]);
    const visit = async () => {
      const provider = await createProvider(options);
      await provider.request({ method: 'eth_blockNumber' });
      provider.close();
    };
    for (let count = 0; count < 5; count += 1) await visit();
    const resident = async () => {
      for (let count = 0; count < 5; count += 1) {
        gc();
        await pause(20);
      }
      return process.memoryUsage().rss;
    };
    const before = await resident();
    for (let count = 0; count < 60; count += 1) await visit();
    const more = async () => Math.round(((await resident()) - before) / 2 ** 20);
    // Other threads return the memory to the system, when they have the time.
    let left;
    await until(async () => (left = await more()) < 60, 'less memory').catch(() => {});
    console.log(left);
  `;
  try {
    const { stdout, ...end } = await runScript(text, [served.options], { flags: ['--expose-gc'] });
    assert.deepEqual(end, END);
    assert.ok(Number(stdout) < 60, `${stdout} MiB more`);
    console.log(`60 clients leave ${stdout.trim()} MiB`);
  } finally {
    await served.close();
  }
});
