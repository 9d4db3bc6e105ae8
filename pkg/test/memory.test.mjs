// The memory of the built package's modules: what happens when it is full, and that an upstream cannot fill it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { inPage } from './lib/in-page.mjs';
import { flooded, outgrown, trapped } from './lib/memory-scenario.mjs';
import { runScript } from './lib/run-script.mjs';
import { LIMIT } from './lib/wait.mjs';

const ENDED = /^the WebAssembly module has ended with \d+ MiB of memory in use: RuntimeError: /;

function checkTrap({ told, ...seen }) {
  assert.deepEqual(seen, { codes: [4900, 4900, 4900], after: 4900, beside: '0x1', anew: '0x1' });
  assert.equal(told.length, 1);
  assert.equal(told[0][0], 4900);
  assert.match(told[0][1], ENDED);
}

test('a client whose module ends rejects all pending calls; other clients continue, and a new one starts', LIMIT, async () => {
  const bytes = new Uint8Array(readFileSync(new URL('../dist/rootlight_bg.wasm', import.meta.url)));
  checkTrap(await trapped(await import('../index.js'), await import('../dev.js'), bytes));
});

test('a client whose module ends rejects its calls in a page', async () => {
  const work = async () => {
    const { trapped } = await import('/test/lib/memory-scenario.mjs');
    const bytes = new Uint8Array(await (await fetch('/dist/rootlight_bg.wasm')).arrayBuffer());
    return trapped(await import('/index.js'), await import('/dev.js'), bytes);
  };
  checkTrap(await inPage((run) => run(work)));
});

test('an upstream whose responses are longer than honest ones is at fault, and the next one is asked', LIMIT, async () => {
  const { found, asked, demerits, none } = await outgrown(await import('../index.js'), await import('../dev.js'));
  assert.equal(found, 12);
  assert.ok(asked.padding > 0 && asked.honest > 0, JSON.stringify(asked));
  assert.deepEqual([Number(demerits) > 0, Number(none)], [true, 0]);
});

test('padded responses do not fill the memory, and requests are answered or refused', LIMIT, async () => {
  const text = `
    import { flooded } from './test/lib/memory-scenario.mjs';
    const seen = await flooded(await import('./index.js'), await import('./dev.js'));
    console.log(JSON.stringify({ ...seen, peak: process.resourceUsage().maxRSS / 1024 }));
  `;
  const { stdout, ...end } = await runScript(text);
  assert.deepEqual(end, { code: 0, signal: null, stderr: '' });
  const { alone, codes, found, peak } = JSON.parse(stdout);
  assert.equal(alone, 'an answer', 'round after round');
  assert.ok(codes.every((code) => ['an answer', -32002].includes(code)), `${codes}`);
  assert.ok(found > 26, `${found} logs`);
  assert.ok(peak < 1_024, `${peak} MiB`);
  console.log(`twenty requests with padded responses: ${Math.round(peak)} MiB at most`);
});

test('a development chain ends with its module, and another one can be started', LIMIT, async () => {
  const { withLimit } = await import('./lib/memory-scenario.mjs');
  const { createDevChain } = await import('../dev.js');
  const bytes = new Uint8Array(readFileSync(new URL('../dist/rootlight_dev_bg.wasm', import.meta.url)));
  const chain = await createDevChain({ module: await withLimit(bytes, 8 * 2 ** 20) });
  let told;
  chain.on('disconnect', ({ code }) => {
    told = code;
  });
  const data = `0x${'00'.repeat(8 * 2 ** 20)}`;
  await assert.rejects(chain.request({ method: 'web3_sha3', params: [data] }), { code: 4900, message: ENDED });
  assert.equal(told, 4900);
  await assert.rejects(chain.request({ method: 'eth_chainId' }), { code: 4900 });
  const another = await createDevChain();
  assert.equal(await another.request({ method: 'eth_chainId' }), '0x21');
  another.close();
});
