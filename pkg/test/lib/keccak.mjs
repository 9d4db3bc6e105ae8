// Keccak-256 for tests: short and slow, and independent of the code under test.
const MASK = (1n << 64n) - 1n;
const RATE = 136;

/** Offsets of rho along the path of pi, and round constants, from their definitions. */
const { ROUNDS, OFFSETS } = constants();

function constants() {
  const offsets = [];
  for (let t = 0, x = 1, y = 0; t < 24; t += 1) {
    offsets.push([x, y, BigInt((((t + 1) * (t + 2)) / 2) % 64)]);
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  let lfsr = 1;
  const bit = () => {
    const out = lfsr & 1;
    lfsr = (lfsr << 1) ^ (lfsr >> 7 ? 0x171 : 0);
    return out;
  };
  // The register runs from its low end: bit j of round r is x^(7r+j) mod x^8+x^6+x^5+x^4+1.
  const rounds = Array.from({ length: 24 }, () => {
    let constant = 0n;
    for (let j = 0; j < 7; j += 1) if (bit()) constant |= 1n << BigInt(2 ** j - 1);
    return constant;
  });
  return { ROUNDS: rounds, OFFSETS: offsets };
}

const rotate = (value, by) => ((value << by) | (value >> (64n - by))) & MASK;

function permute(a) {
  for (const constant of ROUNDS) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]);
    const d = [0, 1, 2, 3, 4].map((x) => c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1n));
    for (let i = 0; i < 25; i += 1) a[i] ^= d[i % 5];
    let held = a[1];
    for (const [x, y, by] of OFFSETS) {
      const to = y + 5 * ((2 * x + 3 * y) % 5);
      [held, a[to]] = [a[to], rotate(held, by)];
    }
    for (let row = 0; row < 25; row += 5) {
      const b = a.slice(row, row + 5);
      for (let x = 0; x < 5; x += 1) a[row + x] = b[x] ^ (~b[(x + 1) % 5] & MASK & b[(x + 2) % 5]);
    }
    a[0] ^= constant;
  }
}

/** @param {Uint8Array} bytes @returns {Buffer} */
export function keccak256(bytes) {
  const padded = Buffer.alloc((Math.floor(bytes.length / RATE) + 1) * RATE);
  padded.set(bytes);
  padded[bytes.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const state = new Array(25).fill(0n);
  for (let at = 0; at < padded.length; at += RATE) {
    for (let lane = 0; lane < RATE / 8; lane += 1) state[lane] ^= padded.readBigUInt64LE(at + lane * 8);
    permute(state);
  }
  const out = Buffer.alloc(32);
  for (let lane = 0; lane < 4; lane += 1) out.writeBigUInt64LE(state[lane], lane * 8);
  return out;
}
