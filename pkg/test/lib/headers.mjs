// A node with consecutive recorded headers and nothing else, in the forms in which nodes return headers.
import { readFileSync } from 'node:fs';
import { compressed } from './lz4.mjs';
import { hex, unhex } from './state.mjs';

const NOT_RECORDED = { error: { code: -32000, message: 'not recorded' } };
const UNKNOWN = { error: { code: -32601, message: 'method not found' } };

/** Number of strings before the proof of work, in version 0 with the UMM root. */
const BASE_ITEMS = 17;

/** Length prefixes of RLP: `short` is 0x80 for strings, 0xc0 for lists. */
function prefixed(short, bytes) {
  if (short === 0x80 && bytes.length === 1 && bytes[0] < 0x80) return bytes;
  if (bytes.length < 56) return Buffer.concat([Buffer.of(short + bytes.length), bytes]);
  const digits = bytes.length.toString(16);
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
  return Buffer.concat([Buffer.of(short + 55 + length.length), length, bytes]);
}

/** An RLP list of encoded items, and an RLP string. */
export const list = (items) => prefixed(0xc0, Buffer.concat(items));
export const string = (bytes) => prefixed(0x80, Buffer.from(bytes));

/** Format byte of `rootlight_getHeaders`: an LZ4 block follows. */
const LZ4 = 1;

/** Start and end of the content of the item at `at`. */
function span(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [at, at + 1];
  const rest = first - (first < 0xc0 ? 0x80 : 0xc0);
  if (rest < 56) return [at + 1, at + 1 + rest];
  const from = at + 1 + rest - 55;
  return [from, from + bytes.readUIntBE(at + 1, rest - 55)];
}

/** The strings of a header. */
function strings(rlp) {
  const found = [];
  let [at, end] = span(rlp, 0);
  while (at < end) {
    const [from, to] = span(rlp, at);
    found.push(rlp.subarray(from, to));
    at = to;
  }
  return found;
}

const quantity = (bytes) => (bytes.length ? `0x${BigInt(hex(bytes)).toString(16)}` : '0x0');

const mining = ([header, proof, coinbase]) => ({
  bitcoinMergedMiningHeader: hex(header),
  bitcoinMergedMiningMerkleProof: hex(proof),
  bitcoinMergedMiningCoinbaseTransaction: hex(coinbase),
});

/** A block object. Hashes of uncles and transactions are not recorded: their lists are empty. */
function block(hash, items) {
  const [parent, uncles, miner, state, transactions, receipts, bloom] = items.map(hex);
  const [difficulty, number, gasLimit, gasUsed, timestamp] = items.slice(7, 12).map(quantity);
  const roots = { parentHash: parent, sha3Uncles: uncles, stateRoot: state, transactionsRoot: transactions, receiptsRoot: receipts };
  const fees = { extraData: hex(items[12]), paidFees: quantity(items[13]), minimumGasPrice: quantity(items[14]) };
  const numbers = { number, difficulty, gasLimit, gasUsed, timestamp };
  return { hash, ...roots, miner, logsBloom: bloom, ...numbers, ...fees, uncles: [], transactions: [], ...mining(items.slice(BASE_ITEMS)) };
}

/** Headers of one of the recorded files, in ascending order: {number, hash, rlp, difficulty}. */
export function readHeaders(file) {
  return JSON.parse(readFileSync(file, 'utf8')).headers.map(({ number, hash, rlp }) => {
    const bytes = unhex(rlp);
    return { number, hash, rlp: bytes, difficulty: BigInt(hex(strings(bytes)[7])) };
  });
}

/** A header without the proof and the coinbase, as nodes return raw headers. */
export const rawHeader = (rlp) => hex(list(strings(rlp).slice(0, BASE_ITEMS + 1).map((item) => prefixed(0x80, item))));

/** Returns headers in a `form`: 'binary' (many in one response), 'json' (block objects) or 'raw' (whose missing fields come from a block object). */
export class HeaderNode {
  #headers;
  #form;

  constructor(headers, form) {
    this.#headers = headers;
    this.#form = form;
  }

  #at(number) {
    return this.#headers[Number(number) - this.#headers[0].number];
  }

  /** Returns {result} or {error}. */
  ask(method, [first, second] = []) {
    if (method === 'eth_blockNumber') return { result: `0x${this.#headers.at(-1).number.toString(16)}` };
    if (method === 'rootlight_getHeaders') return this.#form === 'binary' ? { result: this.#batch(Number(first), Number(second)) } : UNKNOWN;
    if (method === 'rsk_getRawBlockHeaderByNumber') return this.#form === 'raw' ? this.#raw(first) : UNKNOWN;
    if (method === 'eth_getBlockByNumber' && this.#form !== 'binary') return this.#block(first);
    return NOT_RECORDED;
  }

  #batch(first, count) {
    const wanted = this.#headers.filter(({ number }) => number >= first && number < first + count);
    return Buffer.concat([Buffer.of(LZ4), compressed(list(wanted.map(({ rlp }) => list([rlp, list([])]))))]).toString('base64');
  }

  #raw(number) {
    const header = this.#at(number);
    if (!header) return { result: null };
    return { result: rawHeader(header.rlp) };
  }

  #block(number) {
    const header = this.#at(number);
    if (!header) return { result: null };
    const items = strings(header.rlp);
    return { result: this.#form === 'json' ? block(header.hash, items) : mining(items.slice(BASE_ITEMS)) };
  }
}
