// An LZ4 block, as servers pack headers.

/** A match is followed by at least this many bytes, and the block ends with five literals. */
const END = 12;

const LITERALS = 5;
const SHORTEST = 4;
const FARTHEST = 65_535;
const TABLE_BITS = 15;

/** A length of which `field`, at most 15, is in the token: the rest in bytes of at most 255. */
function rest(length, out) {
  for (let left = length - 15; left >= 0; left -= 255) out.push(Math.min(left, 255));
}

function sequence(out, bytes, [from, to], match) {
  const [literals, length] = [to - from, match ? match.length - SHORTEST : 0];
  out.push((Math.min(literals, 15) << 4) | Math.min(length, 15));
  rest(literals, out);
  for (let at = from; at < to; at += 1) out.push(bytes[at]);
  if (!match) return;
  out.push(match.offset & 255, match.offset >> 8);
  rest(length, out);
}

/** Packs a buffer, always with the last match that begins with the same four bytes. */
export function compressed(bytes) {
  const out = [];
  const seen = new Int32Array(1 << TABLE_BITS).fill(-1);
  let begun = 0;
  for (let at = 0; at < bytes.length - END; ) {
    const word = bytes.readUInt32LE(at);
    const slot = Math.imul(word, 2_654_435_761) >>> (32 - TABLE_BITS);
    const from = seen[slot];
    seen[slot] = at;
    if (from < 0 || at - from > FARTHEST || bytes.readUInt32LE(from) !== word) {
      at += 1;
      continue;
    }
    let length = SHORTEST;
    while (at + length < bytes.length - LITERALS && bytes[from + length] === bytes[at + length]) length += 1;
    sequence(out, bytes, [begun, at], { offset: at - from, length });
    at += length;
    begun = at;
  }
  sequence(out, bytes, [begun, bytes.length]);
  return Buffer.from(out);
}
