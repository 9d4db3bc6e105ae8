// A chain whose headers are as long as those of the main network, with its rules but for difficulty and two forms, and cheap proofs of work.
// This file mines the chain, with code of its own and not that under test.
import { createHash } from 'node:crypto';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { list, string } from './headers.mjs';
import { bitcoinHeader, solve } from './mined-bitcoin.mjs';

/** Number of the first header. */
export const FIRST = 9_000_000;

/** Seconds between blocks. */
export const SPACING = 30;

/** The network of the chain: headers of version 0, whose coinbases commit to nothing but their header. */
export const NETWORK = {
  name: 'cheap',
  base: 'mainnet',
  knownUntil: 99_000_000,
  params: { minimumDifficulty: 4 },
  rules: { rskip110: -1, rskip351: -1 },
  workStart: { difficulty: 4, from: FIRST },
};

/** The same on a Bitcoin chain that is mined here too. */
export const DATED_NETWORK = {
  name: 'dated',
  base: 'regtest',
  params: { minimumDifficulty: 4, futureBound: 60 },
  rules: { rskip97: 0, rskip351: -1, rskip535: -1 },
  workStart: { difficulty: 4, from: FIRST, headers: 5_760 },
};

/** Blocks between two blocks of Bitcoin. */
export const EVERY = 20;

/** Levels of the Merkle branch of a coinbase transaction: a Bitcoin block has about 4,096 transactions. */
const BRANCH = 12;

/** Bytes of the coinbase transaction before the tag, and after the hash that follows it. */
const [BEFORE, AFTER] = [12, 63];

const DIFFICULTY = 4;
const NO_UNCLES = keccak_256(Buffer.of(0xc0));

/** The state of SHA-256 before the first block. */
const START = Buffer.from('6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19', 'hex');

const sha256 = (bytes) => createHash('sha256').update(bytes).digest();
const doubleSha = (bytes) => sha256(sha256(bytes));

/** Bytes that do not compress. */
const noise = (name, number) => sha256(`${name} ${number}`);

function quantity(value) {
  const digits = BigInt(value).toString(16);
  return value === 0 ? Buffer.alloc(0) : Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
}

/** The bloom of some transactions with logs. */
function bloom(number) {
  const bits = Buffer.alloc(256);
  const random = noise('bloom', number);
  for (let at = 0; at < 24; at += 1) bits[(random[at] + 11 * at) % 256] |= 1 << (at % 8);
  return bits;
}

/** The fields of a header before its proof of work. */
function fields(number, parent, timestamp, stateRoot) {
  const hashes = [stateRoot, noise('transactions', number), noise('receipts', number)];
  const numbers = [DIFFICULTY, number, 6_800_000, 1_000_000 + (number % 100_000), timestamp].map(quantity);
  const fees = [Buffer.from('VETIVER-0000'), quantity(number * 1_000_000), quantity(23_000_000)];
  return [parent, NO_UNCLES, noise('miner', number % 5).subarray(0, 20), ...hashes, bloom(number), ...numbers, ...fees, quantity(0), Buffer.alloc(0)];
}

/** What a tag has in place of the last twelve bytes of the hash (RSKIP-110): bytes of every 64th Bitcoin hash, uncles, and the number. */
function forkDetection(number, bytes) {
  const data = Buffer.alloc(12);
  const newest = Math.floor((number - 1) / 64) * 64;
  for (let at = 0; at < 7; at += 1) data[at] = bytes[newest - 64 * at - FIRST] ?? 0;
  data.writeUInt32BE(number, 8);
  return data;
}

/** The proof of work for a hash: Bitcoin header, Merkle branch and coinbase transaction in the forms of a header. */
function mined(hash, number, timestamp, previous) {
  const tail = Buffer.concat([noise('before', number).subarray(0, BEFORE), Buffer.from('RSKBLOCK:'), hash, noise('after', number), noise('end', number)]);
  const transaction = tail.subarray(0, BEFORE + 41 + AFTER);
  const branch = Array.from({ length: BRANCH }, (_, level) => noise('branch', number * BRANCH + level));
  const root = branch.reduce((node, sibling) => doubleSha(Buffer.concat([node, sibling])), doubleSha(transaction));
  // A quarter of all hashes is below the target of difficulty 4.
  const header = solve(bitcoinHeader(previous, root, timestamp), 256 / DIFFICULTY);
  // The bytes that the state stands for are none.
  return [header, Buffer.concat(branch.map((sibling) => Buffer.from(sibling).reverse())), Buffer.concat([Buffer.alloc(8), START, transaction])];
}

/**
 * Mines `length` headers, of which the last one is made at `end`, in seconds since 1970. All have the same state. With `bitcoin`, a
 * {@link import('./mined-bitcoin.mjs').MinedBitcoin}, they are mined on its tip, and every twentieth is a block of it.
 * Returns {number, hash, rlp} of each, as {@link import('./headers.mjs').HeaderNode} takes them.
 */
export function mine(length, end, stateRoot, bitcoin) {
  const headers = [];
  const bytes = [];
  let parent = Buffer.alloc(32);
  for (let index = 0; index < length; index += 1) {
    const [number, timestamp] = [FIRST + index, end - (length - 1 - index) * SPACING];
    const bare = fields(number, parent, timestamp, stateRoot).map(string);
    const previous = bitcoin ? bitcoin.tip : noise('bitcoin', Math.floor(number / EVERY));
    const hash = Buffer.from(keccak_256(list(bare)));
    if (bitcoin) forkDetection(number, bytes).copy(hash, 20);
    const work = mined(hash, number, timestamp, previous);
    bytes.push(doubleSha(work[0])[0]);
    if (bitcoin && index % EVERY === 0) bitcoin.add({ header: work[0], branch: work[1], coinbase: work[2] });
    const [header, branch, coinbase] = work.map(string);
    parent = Buffer.from(keccak_256(list([...bare, header])));
    headers.push({ number, hash: `0x${parent.toString('hex')}`, rlp: list([...bare, header, branch, coinbase]) });
  }
  return headers;
}
