// The verify-only module of the built package: in Node.js, in a page, and in a dedicated worker of a page.
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

test('documents are checked in a dedicated worker', async () => {
  const work = (input) =>
    new Promise((resolve, reject) => {
      const worker = new Worker('/test/lib/verify-worker.mjs', { type: 'module' });
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.onmessage = ({ data }) => resolve(data);
      worker.postMessage(input);
    });
  assert.deepEqual(await inPage((run) => run(work, vectors)), ['DedicatedWorkerGlobalScope', 8]);
});

test('every changed digit of a receipt is refused', async () => {
  const { verifyReceipt } = await import('../verify.js');
  const { receipt } = vectors;
  const digits = receipt.receipt;
  for (let at = 2; at < digits.length; at++) {
    const changed = digits.slice(0, at) + (digits[at] === '0' ? '1' : '0') + digits.slice(at + 1);
    await assert.rejects(verifyReceipt({ ...receipt, receipt: changed }), { name: 'VerificationError' }, `digit ${at}`);
  }
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
