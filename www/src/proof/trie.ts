// Decodes nodes of Rootstock's state trie, the Unitrie (RSKIP-107), to draw the path from a root to a value.
import { concat, digits, equal, fromHex } from '../bytes.ts';
import { keccak } from './hash.ts';
import { decodeBytes, encodeBytes } from './rlp.ts';

/** A node of a path, and the part of its bytes that names the next node or has the value. */
export interface PathNode {
  readonly hash: Uint8Array;
  readonly bytes: Uint8Array;
  /** The next node's reference: its position in the bytes, which child it is, and whether the whole child is there (embedded) or its hash. */
  readonly next?: { readonly start: number; readonly end: number; readonly right: boolean; readonly embedded: boolean };
  /** The position of the value in the last node; a long value is there as its hash and its length. */
  readonly value?: { readonly start: number; readonly end: number; readonly isLong: boolean };
}

/** The path from a root to the end of a key. */
export interface TriePath {
  readonly nodes: readonly PathNode[];
  /** Whether the first node has the hash of the root, and each further one the hash that its parent names. */
  readonly linked: boolean;
  /** Whether there is a value; otherwise the path proves its absence. */
  readonly found: boolean;
}

/** The key of an account in the trie (RSKIP-107): a zero byte, the first 10 bytes of the address's Keccak-256, and the address. */
export const accountKey = (address: string): Uint8Array => {
  const bytes = fromHex(address);
  return concat(Uint8Array.of(0), keccak(bytes).subarray(0, 10), bytes);
};

/** The key of a storage cell: the account's key, a zero byte, the first 10 bytes of the cell's Keccak-256, and its number without leading zeros. */
export function slotKey(address: string, slot: string): Uint8Array {
  const full = fromHex(`0x${BigInt(slot).toString(16).padStart(64, '0')}`);
  const first = full.findIndex((byte) => byte !== 0);
  const stripped = first < 0 ? Uint8Array.of(0) : full.subarray(first);
  return concat(accountKey(address), Uint8Array.of(0), keccak(full).subarray(0, 10), stripped);
}

/** A child in the bytes of a node: a hash, or the child itself. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly embedded: boolean;
}

/** A decoded node. */
interface Node {
  /** The bits of the key that all keys below the node share. */
  readonly path: string;
  readonly left: Span | undefined;
  readonly right: Span | undefined;
  readonly value: { readonly start: number; readonly end: number; readonly isLong: boolean };
}

/** Bytes as a text of 0 and 1. */
const bits = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');

/** Reads the parts of a node in their order. */
class Reader {
  /** The position of the next byte. */
  at = 0;
  private readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** The next byte. */
  byte(): number {
    const value = this.bytes[this.at];
    if (value === undefined) throw new Error('a trie node ends too early');
    this.at += 1;
    return value;
  }

  /** Bitcoin's variable-length number. */
  number(): number {
    const first = this.byte();
    const size = first === 0xfd ? 2 : first === 0xfe ? 4 : first === 0xff ? 8 : 0;
    if (size === 0) return first;
    return Array.from({ length: size }, (_, at) => this.byte() * 256 ** at).reduce((sum, part) => sum + part, 0);
  }

  /**
   * The shared bits: a byte for their number, then the bits, padded to bytes. The byte stands for 1 to 32 bits (0 to 31) or for 160 to 382 bits
   * (32 to 254); after 255 the number follows.
   */
  path(): string {
    const code = this.byte();
    const length = code < 32 ? code + 1 : code < 255 ? code + 128 : this.number();
    const size = Math.ceil(length / 8);
    this.at += size;
    return bits(this.bytes.subarray(this.at - size, this.at)).slice(0, length);
  }

  /** A child: an embedded one with its length before it, or a hash. */
  child(embedded: boolean): Span {
    const size = embedded ? this.byte() : 32;
    this.at += size;
    return { start: this.at - size, end: this.at, embedded };
  }
}

/**
 * Decodes a node (RSKIP-107). The bits of its first byte, after 01 for the version, say which parts follow: 0x20 a long value, 0x10 shared bits, 0x08
 * and 0x04 a left and a right child, 0x02 and 0x01 that these are embedded.
 */
function read(bytes: Uint8Array): Node {
  const reader = new Reader(bytes);
  const flags = reader.byte();
  const has = (bit: number) => (flags & bit) !== 0;
  if (flags >> 6 !== 1) throw new Error('not a node of the state trie');
  const path = has(0x10) ? reader.path() : '';
  const left = has(0x08) ? reader.child(has(0x02)) : undefined;
  const right = has(0x04) ? reader.child(has(0x01)) : undefined;
  // The size of all nodes below, which the page does not need.
  if (left || right) reader.number();
  return { path, left, right, value: { start: reader.at, end: bytes.length, isLong: has(0x20) } };
}

/** The nodes of `eth_getProof`, each of which is wrapped in RLP. */
export const unwrapped = (proof: readonly string[]): Uint8Array[] => proof.map((text) => decodeBytes(fromHex(text)));

/** The key of a receipt in the trie of its block: its index in RLP. */
export function receiptKey(index: number): Uint8Array {
  const text = index.toString(16);
  return encodeBytes(index === 0 ? new Uint8Array() : fromHex(text.length % 2 === 0 ? text : `0${text}`));
}

/** Follows a key through the nodes of a proof from the root on. For an absent key the path ends where a node has other bits or no such child. */
export function follow(root: string, key: Uint8Array, proof: readonly Uint8Array[]): TriePath {
  const known = new Map(proof.map((node) => [digits(keccak(node)), node]));
  const nodes: PathNode[] = [];
  let expected: Uint8Array = fromHex(root);
  let bytes = known.get(digits(expected));
  for (let rest = bits(key); bytes; ) {
    const hash = keccak(bytes);
    const node = read(bytes);
    const embedded = nodes.at(-1)?.next?.embedded ?? false;
    if (!embedded && !equal(hash, expected)) break;
    if (!rest.startsWith(node.path)) return { nodes: [...nodes, { hash, bytes }], linked: true, found: false };
    rest = rest.slice(node.path.length);
    if (rest === '') {
      const found = node.value.end > node.value.start;
      return { nodes: [...nodes, found ? { hash, bytes, value: node.value } : { hash, bytes }], linked: true, found };
    }
    const right = rest.startsWith('1');
    const child = right ? node.right : node.left;
    if (!child) return { nodes: [...nodes, { hash, bytes }], linked: true, found: false };
    nodes.push({ hash, bytes, next: { ...child, right } });
    rest = rest.slice(1);
    expected = bytes.subarray(child.start, child.end);
    bytes = child.embedded ? expected : known.get(digits(expected));
  }
  return { nodes, linked: false, found: false };
}
