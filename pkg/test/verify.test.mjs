// The verify-only module of the built package: in Node.js, in a page, and in a dedicated worker of a page.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NETWORKS } from '../message.js';
import { inPage } from './lib/in-page.mjs';
import { scenario, tableScenario } from './lib/verify-scenario.mjs';

const vectors = JSON.parse(readFileSync(new URL('../../tests/vectors/offline.json', import.meta.url), 'utf8'));
const table = JSON.parse(readFileSync(new URL('../../tests/vectors/verify.json', import.meta.url), 'utf8'));
const CASES = table.cases.length;

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
  const { receipt: verifyReceipt } = await import('../verify.js');
  const { receipt } = vectors;
  const digits = receipt.receipt;
  for (let at = 2; at < digits.length; at++) {
    const changed = digits.slice(0, at) + (digits[at] === '0' ? '1' : '0') + digits.slice(at + 1);
    await assert.rejects(verifyReceipt({ ...receipt, receipt: changed }), { name: 'VerificationError' }, `digit ${at}`);
  }
});

test('every changed digit of a mainnet header is refused', async () => {
  const { header } = await import('../verify.js');
  const { documents: { mainnetHeader } } = table;
  const { facts: { hash } } = await header(mainnetHeader);
  for (let at = 2; at < mainnetHeader.length; at++) {
    const changed = mainnetHeader.slice(0, at) + (mainnetHeader[at] === '0' ? '1' : '0') + mainnetHeader.slice(at + 1);
    const outcome = await header(changed).catch((error) => error);
    assert.equal(outcome.name, 'VerificationError', `digit ${at}: ${outcome.facts?.hash} for ${hash}`);
  }
});

test('a recorded mainnet header and its mutations have the recorded verdicts', (t) => checkMutations(t));

async function checkMutations(t) {
  const shared = process.env.ROOTLIGHT_SHARED ?? fileURLToPath(new URL('../../../shared', import.meta.url));
  const file = `${shared}/realdata/negative/mainnet_mutations.json`;
  if (!existsSync(file)) return t.skip('no recorded mutations: set ROOTLIGHT_SHARED');
  const { header } = await import('../verify.js');
  const { vectors: mutations } = JSON.parse(readFileSync(file, 'utf8'));
  for (const { name, rlp, accept } of mutations) {
    const outcome = await header(rlp).then(() => true, (error) => error.name !== 'VerificationError' && error);
    assert.equal(outcome, accept, name);
  }
}

test('a header is checked by the rules of a known network only', async () => {
  const { header } = await import('../verify.js');
  const known = NETWORKS.split(/, | or /);
  await assert.rejects(header('0x', { network: 'ethereum' }), { code: -32600, message: `network: 'ethereum' is not known: give ${NETWORKS}` });
  for (const network of known) await assert.rejects(header('0x', { network }), { name: 'VerificationError' }, network);
  assert.deepEqual([known.length, known.at(-1)], [5, 'regtest']);
  // The instance goes on after the error.
  assert.equal((await header(table.documents.minedValid, { network: 'testnet' })).facts.number, '7500000');
});

test('a header of another network is refused with the network that was meant', async () => {
  const { header } = await import('../verify.js');
  await assert.rejects(header(table.documents.minedValid), { rule: 'headerHash', message: /by the rules of mainnet$/ });
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
