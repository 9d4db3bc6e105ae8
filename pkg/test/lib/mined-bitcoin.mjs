// A Bitcoin chain at a private network's difficulty, as Rootlights serve Bitcoin's. It is mined here, by other code than that under test.
import { createHash } from 'node:crypto';
import { list, string } from './headers.mjs';

/** The hash of the block below the first one, in Bitcoin's byte order. */
const GENESIS = Buffer.from('06226e46111a0b59caaf126043eb5bbf28c34f3a5e332a1fc7b2b73cf188910f', 'hex');

/** Seconds between blocks. */
const SPACING = 600;

/** The target of all blocks. */
const BITS = 0x207f_ffff;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest();
const doubleSha = (bytes) => sha256(sha256(bytes));

/** Whether the headers are packed alike: the parts of one that are left out if they are those of the one before. */
const [VERSION, WHOLE_TIME, TARGET] = [1, 2, 4];

/** A Bitcoin header without a proof of work. */
export function bitcoinHeader(previous, root, time) {
  const header = Buffer.alloc(80);
  header.writeUInt32LE(0x2000_0000, 0);
  previous.copy(header, 4);
  root.copy(header, 36);
  header.writeUInt32LE(time, 68);
  header.writeUInt32LE(BITS, 72);
  return header;
}

/** Searches a nonce with which the hash is below as many parts of 256. */
export function solve(header, below) {
  for (let nonce = 0; doubleSha(header)[31] >= below; nonce += 1) header.writeUInt32LE(nonce + 1, 76);
  return header;
}

export class MinedBitcoin {
  #blocks = [];
  #shown = 0;

  /** Mines as many blocks without coinbases, of which the last one is made at `end`, in seconds since 1970. */
  constructor(blocks, end) {
    for (let left = blocks - 1; left >= 0; left -= 1) {
      this.add({ header: solve(bitcoinHeader(this.tip, sha256(`block ${left}`), end - left * SPACING), 0x7f) });
    }
  }

  /** Hash of the newest block. */
  get tip() {
    return this.#blocks.length > 0 ? this.#blocks.at(-1).hash : GENESIS;
  }

  /** Puts a block on top: its header, and the coinbase and its branch in the forms of Rootstock headers. */
  add(block) {
    this.#blocks.push({ ...block, hash: doubleSha(block.header) });
    this.#shown = this.#blocks.length;
  }

  /** Leaves out as many of the newest blocks. */
  hide(blocks) {
    this.#shown = this.#blocks.length - blocks;
  }

  /** The result of a method, if it is one about Bitcoin's chain. */
  ask(method, params) {
    const [from, count] = params.map(Number);
    if (method === 'rootlight_getBitcoinHeaders') return this.#headers(Math.max(from, 1), count);
    if (method === 'rootlight_getBitcoinTags') return this.#tags(from, count);
    return undefined;
  }

  #range(from, count) {
    return this.#blocks.slice(from - 1, Math.min(from - 1 + count, this.#shown));
  }

  /** The chain as clients store it: the block below the first one, the target of the first, the headers, and a checksum. */
  stored() {
    const start = Buffer.alloc(41, 1);
    start.writeUInt32LE(0, 1);
    GENESIS.copy(start, 5);
    start.writeUInt32LE(BITS, 37);
    const content = Buffer.concat([start, this.#packed(1, this.#shown)]);
    return Buffer.concat([content, doubleSha(content).subarray(0, 8)]);
  }

  #headers(from, count) {
    const heights = Buffer.alloc(8);
    heights.writeUInt32BE(1, 0);
    heights.writeUInt32BE(this.#shown, 4);
    return Buffer.concat([heights, this.#packed(from, count)]).toString('base64');
  }

  #packed(from, count) {
    const parts = [Buffer.of(1)];
    let before = Buffer.alloc(80);
    for (const { header } of this.#range(from, count)) {
      if (parts.length === 1) parts.push(header.subarray(4, 36));
      parts.push(packed(before, header));
      before = header;
    }
    return Buffer.concat(parts);
  }

  #tags(from, count) {
    const entries = this.#range(from, count).map(({ coinbase, branch }) => {
      return list(coinbase ? [string(Buffer.of(1)), string(coinbase), string(branch)] : []);
    });
    return Buffer.concat([Buffer.of(1), list(entries)]).toString('base64');
  }
}

function packed(before, header) {
  const differs = (from, to) => !before.subarray(from, to).equals(header.subarray(from, to));
  const seconds = header.readUInt32LE(68) - before.readUInt32LE(68);
  const isFar = Math.abs(seconds) > 32_767;
  const flags = (differs(0, 4) ? VERSION : 0) | (isFar ? WHOLE_TIME : 0) | (differs(72, 76) ? TARGET : 0);
  const time = isFar ? header.subarray(68, 72) : Buffer.alloc(2);
  if (!isFar) time.writeInt16LE(seconds);
  return Buffer.concat([
    Buffer.of(flags),
    header.subarray(0, flags & VERSION ? 4 : 0),
    header.subarray(36, 68),
    time,
    header.subarray(72, flags & TARGET ? 76 : 72),
    header.subarray(76, 80),
  ]);
}
