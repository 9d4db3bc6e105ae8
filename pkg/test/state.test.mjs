// The recorded node that other tests use: its proofs compared with recordings of the reference node.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { jsonLines } from './lib/upstream.mjs';
import { State } from './lib/state.mjs';

const shared = process.env.ROOTLIGHT_SHARED ?? fileURLToPath(new URL('../../../shared', import.meta.url));
const folder = `${shared}/vectors/chain`;
const skip = existsSync(folder) ? false : `no recordings in ${folder}`;

test('accounts and slots have the values of the reference node', { skip }, async () => {
  const nodes = new Map();
  for await (const { hash, value } of jsonLines(`${folder}/state_nodes.jsonl`)) nodes.set(hash, value);
  const state = new State(nodes);
  let seen = 0;
  for await (const line of jsonLines(`${folder}/state_proofs.jsonl`)) {
    if (line.kind === 'account') {
      const proof = state.proof(line.root, line.address, []);
      assert.equal(BigInt(proof.nonce), BigInt(line.nonce ?? 0), line.label);
      assert.equal(BigInt(proof.balance), BigInt(line.balance ?? 0), line.label);
      seen += 1;
    } else if (line.kind === 'storage') {
      const [slot] = state.proof(line.root, line.address, [line.slot]).storageProof;
      assert.equal(BigInt(slot.value), BigInt(line.value ?? 0), line.label);
      seen += 1;
    }
  }
  assert.ok(seen > 400, `${seen} lines`);
});
