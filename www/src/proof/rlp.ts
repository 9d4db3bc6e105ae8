// RLP, Ethereum's encoding of headers, transactions and nodes of proofs: flat lists of byte strings, which is all that the page needs.
import { concat } from '../bytes.ts';

const MALFORMED = 'the bytes are not an RLP list of byte strings';

/** The length of bytes as a big-endian number. */
function length(bytes: Uint8Array): Uint8Array {
  const out: number[] = [];
  for (let left = bytes.length; left > 0; left = Math.floor(left / 256)) out.unshift(left % 256);
  return Uint8Array.from(out);
}

/** An item of RLP: `base` is 0x80 for byte strings and 0xc0 for lists. */
function prefixed(base: number, bytes: Uint8Array): Uint8Array {
  if (bytes.length < 56) return concat(Uint8Array.of(base + bytes.length), bytes);
  const size = length(bytes);
  return concat(Uint8Array.of(base + 55 + size.length), size, bytes);
}

/** A byte string in RLP. */
export const encodeBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.length === 1 && (bytes[0] ?? 0) < 0x80 ? bytes : prefixed(0x80, bytes);

/** A list of byte strings in RLP. */
export const encodeList = (items: readonly Uint8Array[]): Uint8Array => prefixed(0xc0, concat(...items.map(encodeBytes)));

/** The content of the item at position `at`, and the position after it; throws if it is not of the kind of `base`. */
function item(bytes: Uint8Array, at: number, base: 0x80 | 0xc0): [content: Uint8Array, next: number] {
  const first = bytes[at];
  if (first === undefined || (base === 0xc0 && first < 0xc0) || (base === 0x80 && first >= 0xc0)) throw new Error(MALFORMED);
  if (first < 0x80) return [bytes.subarray(at, at + 1), at + 1];
  let start = at + 1;
  let size = first - base;
  if (size > 55) {
    const digits = bytes.subarray(start, start + size - 55);
    start += size - 55;
    size = digits.reduce((sum, digit) => sum * 256 + digit, 0);
  }
  if (start + size > bytes.length) throw new Error(MALFORMED);
  return [bytes.subarray(start, start + size), start + size];
}

/** The byte strings of a flat list. */
export function decodeList(bytes: Uint8Array): Uint8Array[] {
  const [content, end] = item(bytes, 0, 0xc0);
  if (end !== bytes.length) throw new Error(MALFORMED);
  const items: Uint8Array[] = [];
  for (let at = 0; at < content.length; ) {
    const [value, next] = item(content, at, 0x80);
    items.push(value);
    at = next;
  }
  return items;
}

/** The content of one encoded byte string. */
export function decodeBytes(bytes: Uint8Array): Uint8Array {
  const [content, end] = item(bytes, 0, 0x80);
  if (end !== bytes.length) throw new Error(MALFORMED);
  return content;
}
