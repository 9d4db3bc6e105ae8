// Computes eth_getProof and eth_getCode from a set of trie nodes, as a node with that state does. It is a separate implementation, so that it does
// not share a mistake with the code under test.
import { keccak_256 } from '@noble/hashes/sha3.js';

const EMPTY_TRIE = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421';
const NO_CODE = '0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470';
const NOTHING = `0x${'00'.repeat(32)}`;

export const hex = (bytes) => `0x${Buffer.from(bytes).toString('hex')}`;
export const unhex = (text) => Buffer.from(text.slice(2), 'hex');
const bitsOf = (key) => [...key].map((byte) => byte.toString(2).padStart(8, '0')).join('');
const quantity = (bytes) => (bytes.length ? `0x${BigInt(hex(bytes)).toString(16)}` : '0x0');

/** Bitcoin's variable-length integer: [value, length]. */
function varint(bytes, at) {
  const first = bytes[at];
  if (first < 253) return [first, 1];
  const length = { 253: 2, 254: 4, 255: 6 }[first];
  return [bytes.readUIntLE(at + 1, length), first === 255 ? 9 : 1 + length];
}

function sharedPath(bytes, at) {
  const code = bytes[at];
  const [bits, used] = code === 255 ? varint(bytes, at + 1).map((n, i) => n + i) : [code < 32 ? code + 1 : code + 128, 1];
  const length = Math.ceil(bits / 8);
  return { path: bitsOf(bytes.subarray(at + used, at + used + length)).slice(0, bits), next: at + used + length };
}

/** Parses a trie node: {bytes, path, children: [hash | embedded bytes | undefined], value | long}. */
function parse(bytes) {
  const flags = bytes[0];
  let at = 1;
  let path = '';
  if (flags & 0x10) ({ path, next: at } = sharedPath(bytes, at));
  const children = [
    [0x08, 0x02],
    [0x04, 0x01],
  ].map(([present, embedded]) => {
    if (!(flags & present)) return undefined;
    const from = flags & embedded ? at + 1 : at;
    at = flags & embedded ? from + bytes[at] : from + 32;
    return { embedded: Boolean(flags & embedded), bytes: bytes.subarray(from, at) };
  });
  if (flags & 0x0c) at += varint(bytes, at)[1];
  const rest = bytes.subarray(at);
  return flags & 0x20 ? { bytes, path, children, long: hex(rest.subarray(0, 32)) } : { bytes, path, children, value: rest };
}

const accountKey = (address) => Buffer.concat([Buffer.of(0), keccak_256(address).subarray(0, 10), address]);

function slotKey(address, slot) {
  const word = Buffer.from(slot.toString(16).padStart(64, '0'), 'hex');
  const first = word.findIndex((byte) => byte !== 0);
  const stripped = word.subarray(first < 0 ? 31 : first);
  return Buffer.concat([accountKey(address), Buffer.of(0), keccak_256(word).subarray(0, 10), stripped]);
}

/** RLP string; nodes stay far below 64 kB. */
function wrap(bytes) {
  const n = bytes.length;
  if (n === 1 && bytes[0] < 0x80) return bytes;
  const prefix = n < 56 ? [0x80 + n] : n < 256 ? [0xb8, n] : [0xb9, n >> 8, n & 255];
  return Buffer.concat([Buffer.from(prefix), bytes]);
}

/** The two items of an account's RLP list. */
function accountFields(bytes) {
  const fields = [];
  for (let at = 1; at < bytes.length; ) {
    const short = bytes[at] < 0x80;
    const length = short ? 1 : bytes[at] - 0x80;
    const from = short ? at : at + 1;
    fields.push(bytes.subarray(from, from + length));
    at = from + length;
  }
  return fields;
}

/** A state, given by its nodes: a map from hash to hex bytes, which includes long values. */
export class State {
  #nodes;

  constructor(nodes) {
    this.#nodes = nodes;
  }

  /** The nodes on the path of a key, from the root on, and the node at the key if there is one. */
  #walk(root, key) {
    const nodes = [];
    let rest = bitsOf(key);
    let bytes = root === EMPTY_TRIE ? undefined : this.#bytes(root);
    while (bytes) {
      const node = parse(bytes);
      nodes.push(node.bytes);
      if (!rest.startsWith(node.path)) return { nodes };
      rest = rest.slice(node.path.length);
      if (rest === '') return { nodes, node };
      const child = node.children[Number(rest[0])];
      rest = rest.slice(1);
      bytes = child && (child.embedded ? child.bytes : this.#bytes(hex(child.bytes)));
    }
    return { nodes };
  }

  #bytes(hash) {
    const found = this.#nodes.get(hash);
    if (!found) throw new Error(`no node ${hash}`);
    return unhex(found);
  }

  #value(node) {
    if (node?.long) return this.#bytes(node.long);
    return node?.value?.length ? node.value : undefined;
  }

  code(root, address) {
    const { node } = this.#walk(root, Buffer.concat([accountKey(unhex(address)), Buffer.of(0x80)]));
    return hex(this.#value(node) ?? Buffer.alloc(0));
  }

  proof(root, address, keys) {
    const at = unhex(address);
    const account = this.#walk(root, accountKey(at));
    const value = this.#value(account.node);
    const storage = this.#walk(root, Buffer.concat([accountKey(at), Buffer.of(0)]));
    const code = this.code(root, address);
    const [nonce, balance] = value ? accountFields(value) : [Buffer.alloc(0), Buffer.alloc(0)];
    const list = ({ nodes }) => nodes.map((node) => hex(wrap(node)));
    return {
      address,
      accountProof: list(account),
      balance: quantity(balance),
      codeHash: !value ? NOTHING : code === '0x' ? NO_CODE : hex(keccak_256(unhex(code))),
      nonce: quantity(nonce),
      storageHash: storage.node ? hex(keccak_256(storage.node.bytes)) : EMPTY_TRIE,
      storageProof: keys.map((key) => {
        const slot = this.#walk(root, slotKey(at, BigInt(key)));
        return { key, value: quantity(this.#value(slot.node) ?? Buffer.alloc(0)), proof: list(slot) };
      }),
    };
  }
}
