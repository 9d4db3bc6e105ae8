// The verify-only module of the built package, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { inPage } from './lib/in-page.mjs';
import { scenario } from './lib/verify-scenario.mjs';

const vectors = JSON.parse(readFileSync(new URL('../../tests/vectors/offline.json', import.meta.url), 'utf8'));

test('documents are checked in Node.js', async () => {
  assert.equal(await scenario(await import('../verify.js'), vectors), 8);
});

test('documents are checked in a page', async () => {
  const work = async (input) => {
    const { scenario } = await import('/test/lib/verify-scenario.mjs');
    return scenario(await import('/verify.js'), input);
  };
  assert.equal(await inPage((run) => run(work, vectors)), 8);
});
