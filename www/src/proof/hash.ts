// The hash functions of Rootstock (Keccak-256) and Bitcoin (SHA-256). SHA-256 is written here because a merge-mining proof continues it from a
// stored state, which neither the browser nor libraries offer.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concat } from '../bytes.ts';

/** Keccak-256. */
export const keccak = (bytes: Uint8Array): Uint8Array => keccak_256(bytes);

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4). */
const K = once(() => constants(3, 64));
/** The state before the first block, as bytes: the same bits of the square roots of the first eight primes. */
const START = once(() => {
  const view = new DataView(new ArrayBuffer(32));
  constants(2, 8).forEach((word, i) => view.setUint32(4 * i, word));
  return new Uint8Array(view.buffer);
});

/** Computes the result of a function when it is first needed, so that it does not delay the page's start. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** The first 32 bits of the fractional parts of the square (2) or cube (3) roots of the first primes. */
function constants(root: 2 | 3, count: number): Uint32Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return Uint32Array.from(primes, (prime) => {
    // The root of prime * 2^(32 * root) as a whole number has the wanted bits at its end.
    const value = BigInt(prime) << BigInt(32 * root);
    let low = 0n;
    let high = 1n << 40n;
    while (high - low > 1n) {
      const middle = (low + high) >> 1n;
      if (middle ** BigInt(root) <= value) low = middle;
      else high = middle;
    }
    return Number(low & 0xffff_ffffn);
  });
}

/** Rotates a word to the right. */
const right = (word: number, by: number) => (word >>> by) | (word << (32 - by));
/** The word at an index. The compiler does not know that the index is below the length. */
const at = (words: Uint32Array, index: number) => words[index] ?? 0;

/** Mixes one block of 64 bytes into the state, as FIPS 180-4 names its steps (section 6.2.2). */
function mix(state: Uint32Array, block: Uint8Array): void {
  const words = new Uint32Array(64);
  const view = new DataView(block.buffer, block.byteOffset, 64);
  for (let i = 0; i < 16; i += 1) words[i] = view.getUint32(4 * i);
  for (let i = 16; i < 64; i += 1) {
    const [a, b] = [at(words, i - 15), at(words, i - 2)];
    const [s0, s1] = [right(a, 7) ^ right(a, 18) ^ (a >>> 3), right(b, 17) ^ right(b, 19) ^ (b >>> 10)];
    words[i] = at(words, i - 16) + s0 + at(words, i - 7) + s1;
  }
  const v = state.slice();
  const k = K();
  for (let i = 0; i < 64; i += 1) {
    const [a, b, c, e, f, g] = [at(v, 0), at(v, 1), at(v, 2), at(v, 4), at(v, 5), at(v, 6)];
    const one = at(v, 7) + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + at(k, i) + at(words, i);
    const two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    v.copyWithin(1, 0, 7);
    v[4] = at(v, 4) + one;
    v[0] = one + two;
  }
  for (let i = 0; i < 8; i += 1) state[i] = at(state, i) + at(v, i);
}

/**
 * SHA-256 of a message whose first `count` bytes were hashed already and left `state` (32 bytes). As in Rootstock's proofs,
 * `count` adds to the length, and the position of the padding depends on `tail` alone.
 */
export function sha256From(state: Uint8Array, count: bigint, tail: Uint8Array): Uint8Array {
  const view = new DataView(state.buffer, state.byteOffset, 32);
  const words = Uint32Array.from({ length: 8 }, (_, i) => view.getUint32(4 * i));
  const padding = new Uint8Array(((55 - (tail.length % 64) + 64) % 64) + 1 + 8);
  padding[0] = 0x80;
  new DataView(padding.buffer).setBigUint64(padding.length - 8, BigInt.asUintN(64, (count + BigInt(tail.length)) * 8n));
  const all = concat(tail, padding);
  for (let start = 0; start < all.length; start += 64) mix(words, all.subarray(start, start + 64));
  const out = new DataView(new ArrayBuffer(32));
  words.forEach((word, i) => out.setUint32(4 * i, word));
  return new Uint8Array(out.buffer);
}

/** SHA-256. */
export const sha256 = (bytes: Uint8Array): Uint8Array => sha256From(START(), 0n, bytes);

/** SHA-256 twice, as Bitcoin hashes transactions and headers. */
export const doubleSha = (bytes: Uint8Array): Uint8Array => sha256(sha256(bytes));
