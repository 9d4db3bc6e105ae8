// Chains of the npm package on a block of `rootlight dev`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDevChain } from '../../pkg/dev.js';
import { CHECKS, forkScenario, prepare } from '../../pkg/test/lib/fork-scenario.mjs';
import { startChain } from './chain.mjs';
import { call } from './program.mjs';

test('a chain of the package begins on a block of the program, which proves its state', async () => {
  const chain = await startChain();
  const ask = (method, ...params) => call(chain.url, method, ...params);
  try {
    await prepare(ask);
    assert.equal(await forkScenario({ createDevChain }, { url: chain.url, ask }), CHECKS);
  } finally {
    await chain.stop();
  }
});
