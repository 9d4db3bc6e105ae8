// The page's own hashing and proofs, compared with Node.js and with a real block of the main network.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openSources } from './lib/source.mjs';

let sources;
before(async () => {
  sources = await openSources();
});
after(() => sources.close());

const main = async () => (await sources.load('proof/mainnet.json')).default;

test('SHA-256 equals that of Node.js for messages around the block size, also when it is continued', async () => {
  const { sha256, sha256From } = await sources.load('proof/hash.ts');
  const { digits } = await sources.load('bytes.ts');
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 500]) {
    const message = Uint8Array.from({ length }, (_, at) => (at * 7) % 256);
    assert.equal(digits(sha256(message)), createHash('sha256').update(message).digest('hex'), `${length} bytes`);
  }
  const { midstate, tail, coinbaseHash } = (await sources.load('proof/mining.ts')).prove(await main());
  assert.equal(digits(createHash('sha256').update(sha256From(midstate.subarray(8), 384n, tail)).digest()), digits(coinbaseHash));
});

test('the proof of block 9,000,000 of the main network holds in every step', async () => {
  const { prove } = await sources.load('proof/mining.ts');
  const proof = prove(await main());
  assert.deepEqual(proof.checks.filter(({ holds }) => !holds), []);
  assert.equal(proof.steps.length, 13);
  assert.equal(proof.keccakBytes, 20, 'fork detection data');
});

test('a change of any part of the proof breaks a step', async () => {
  const { prove } = await sources.load('proof/mining.ts');
  const block = await main();
  const flip = (text, at) => text.slice(0, at) + (text[at] === '0' ? '1' : '0') + text.slice(at + 1);
  // In the raw header: the parent's hash, the state root, the difficulty, the time, and the Bitcoin header.
  const length = block.rawHeader.length;
  for (const at of [20, 250, length - 190, length - 100, length - 10]) {
    const failed = prove({ ...block, rawHeader: flip(block.rawHeader, at) }).checks.filter(({ holds }) => !holds);
    assert.ok(failed.length > 0, `header, digit ${at}`);
  }
  const broken = (part, at) => prove({ ...block, [part]: flip(block[part], at) }).checks.filter(({ holds }) => !holds).map(({ name }) => name);
  assert.deepEqual(broken('coinbase', 30), ['branch'], 'the hash state');
  assert.deepEqual(broken('coinbase', 130), ['branch', 'coinbase', 'commitment'], 'the commitment');
  assert.deepEqual(broken('merkleProof', 70), ['branch']);
  assert.deepEqual(broken('hash', 10), ['hash']);
});

test('a path in the state trie ends at the account, and a changed node breaks it', async () => {
  const { createDevChain } = await import('../../pkg/dev.js');
  const { accountKey, follow, unwrapped } = await sources.load('proof/trie.ts');
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const { stateRoot } = await ask('eth_getBlockByNumber', 'latest', false);
  for (const account of await ask('eth_accounts')) {
    const { accountProof } = await ask('eth_getProof', account, [], 'latest');
    const path = follow(stateRoot, accountKey(account), unwrapped(accountProof));
    assert.ok(path.linked && path.found && path.nodes.length > 2, account);
    const last = accountProof.at(-1);
    const changed = follow(stateRoot, accountKey(account), unwrapped([...accountProof.slice(0, -1), `${last.slice(0, -2)}ff`]));
    // An embedded node stands in its parent, so that its copy at the end does not count.
    assert.ok(!changed.linked || path.nodes.at(-2)?.next.embedded, account);
  }
  const nobody = `0x${'12'.repeat(20)}`;
  const absent = follow(stateRoot, accountKey(nobody), unwrapped((await ask('eth_getProof', nobody, [], 'latest')).accountProof));
  assert.ok(absent.linked && !absent.found, 'absence');
  chain.close();
});
