// The verify-only module of the built package, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inPage } from './lib/in-page.mjs';
import { scenario, tableScenario } from './lib/verify-scenario.mjs';

const vectors = JSON.parse(readFileSync(new URL('../../tests/vectors/offline.json', import.meta.url), 'utf8'));
const table = JSON.parse(readFileSync(new URL('../../tests/vectors/verify.json', import.meta.url), 'utf8'));
/** Cases of the table that the package can check. */
const CASES = table.cases.filter(({ subject }) => subject !== 'header').length;

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

test('the package and the command line agree about the table of documents', async () => {
  assert.equal(await tableScenario(await import('../verify.js'), table), CASES);
});

test('a page and the command line agree about the table of documents', async () => {
  const work = async (input) => {
    const { tableScenario } = await import('/test/lib/verify-scenario.mjs');
    return tableScenario(await import('/verify.js'), input);
  };
  assert.equal(await inPage((run) => run(work, table)), CASES);
});

test('a program can compute just a hash', () => {
  const run = async () => {
    const { keccak256 } = await import('./verify.js');
    console.log(Buffer.from(await keccak256(new TextEncoder().encode('cow'))).toString('hex'));
  };
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const said = execFileSync(process.execPath, ['--eval', `(${run})()`], { cwd, encoding: 'utf8', stdio: 'pipe' });
  assert.equal(said.trim(), 'c85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4');
});
