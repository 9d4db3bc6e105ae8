// The development chain of the built package, in Node.js and in a real page; no node and no upstream anywhere.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { options, scenario } from './lib/dev-scenario.mjs';
import { inPage } from './lib/in-page.mjs';
import { regtestNode } from './lib/upstream.mjs';

const { bytecode } = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));

/** Number of checks in the scenario. */
const CHECKS = 16;

test('an invalid module is reported and does not affect later loads', async () => {
  const { createDevChain } = await import('../dev.js');
  await assert.rejects(createDevChain({ module: new Uint8Array(8) }), WebAssembly.CompileError);
  (await createDevChain()).close();
});

test('a genesis of null counts as missing', async () => {
  const { createDevChain } = await import('../dev.js');
  (await createDevChain({ genesis: null })).close();
});

test('deploy, call, logs, snapshot and revert in Node.js', async () => {
  assert.equal(await scenario(await import('../dev.js'), { bytecode }), CHECKS);
});

test('options take effect, and errors name wrong ones', async () => {
  assert.equal(await options(await import('../dev.js')), true);
});

test('the reference chain starts from the reference genesis', async () => {
  const { createDevChain } = await import('../dev.js');
  const chain = await createDevChain({ genesis: 'regtest' });
  const genesis = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const recorded = (await regtestNode()).ask('eth_getBlockByNumber', ['0x0', true]).result;
  assert.equal(genesis.hash, recorded.hash);
  chain.close();
});

test('deploy, call, logs, snapshot and revert in a page', async () => {
  const work = async (given) => {
    const { options, scenario } = await import('/test/lib/dev-scenario.mjs');
    const module = await import('/dev.js');
    return [await scenario(module, given), await options(module)];
  };
  assert.deepEqual(await inPage((run) => run(work, { bytecode })), [CHECKS, true]);
});
