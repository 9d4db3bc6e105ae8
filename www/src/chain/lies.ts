// Lies of an upstream, for experiment.ts. Each wraps an honest upstream and changes its answers, as consistently as a forger can.
import { fromHex, quantity, toHex } from '../bytes.ts';
import { word } from '../contracts/abi.ts';
import { readHeader } from '../proof/header.ts';
import { decodeBytes, decodeList, encodeBytes, encodeList } from '../proof/rlp.ts';
import { type Call, type Exchange, type Reply, through, uncheckedAnswer, without } from './upstream.ts';

/** The answer that a lie is about. */
export type LieName = 'balance' | 'token' | 'log' | 'block';

/** A lie as the page offers it. */
export interface Lie {
  readonly name: LieName;
  readonly title: string;
  /** The upstream's trick, in one sentence. */
  readonly description: string;
}

export const LIES: readonly Lie[] = [
  { name: 'balance', title: 'A balance', description: 'The node adds a million RBTC to every account, and forges the end of the proof to match.' },
  { name: 'token', title: 'A token balance', description: 'The node adds a million tokens to the holder’s account in the contract’s storage.' },
  { name: 'log', title: 'A payment', description: 'The node multiplies the amount of every token payment by a thousand, in logs and receipts.' },
  { name: 'block', title: 'A whole block', description: 'The node makes up the newest block: another state root, and the hash recomputed to match. Only the work for it is missing.' },
];

/** A million RBTC in wei, or a million tokens of 18 decimals. */
const MILLION = 1_000_000n * 10n ** 18n;

/** An object of JSON. */
type Json = Record<string, unknown>;

/** A reply with another result. */
const withResult = (reply: Reply, result: unknown): Reply => ({ jsonrpc: '2.0', id: reply.id, result });
const isHex = (value: unknown): value is string => typeof value === 'string' && value.startsWith('0x');

/** A proof whose last node is changed near its end, where the value is. */
function forgedNodes(nodes: unknown): unknown {
  if (!Array.isArray(nodes) || nodes.length === 0) return nodes;
  const last = decodeBytes(fromHex(String(nodes.at(-1)))).slice();
  // Any change of a byte there makes another value.
  const position = Math.max(0, last.length - 6);
  last[position] = (last[position] ?? 0) ^ 0x2a;
  return [...nodes.slice(0, -1), toHex(encodeBytes(last))];
}

/** The lie about a balance. */
function balance(call: Call, reply: Reply): Reply {
  if (call.method === 'eth_getBalance' && isHex(reply.result)) return withResult(reply, quantity(BigInt(reply.result) + MILLION));
  if (call.method !== 'eth_getProof' || !reply.result) return reply;
  const proof = reply.result as Json;
  const more = quantity(BigInt(String(proof['balance'])) + MILLION);
  return withResult(reply, { ...proof, balance: more, accountProof: forgedNodes(proof['accountProof']) });
}

/** The lie about a token's balance. A result of 66 characters is one word of 32 bytes. */
function token(call: Call, reply: Reply): Reply {
  if (call.method === 'eth_call' && isHex(reply.result) && reply.result.length === 66) {
    return withResult(reply, toHex(word(BigInt(reply.result) + MILLION)));
  }
  const cells = call.method === 'eth_getProof' ? (reply.result as Json | null)?.['storageProof'] : undefined;
  if (!Array.isArray(cells)) return reply;
  const forged = (cells as Json[]).map((cell) => ({ ...cell, value: quantity(BigInt(String(cell['value'])) + MILLION), proof: forgedNodes(cell['proof']) }));
  return withResult(reply, { ...(reply.result as Json), storageProof: forged });
}

/** An answer in which the data of all logs, at any depth, is a thousand times as much. Data of one word is the amount of a transfer. */
function inflated(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inflated);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, inner]) => {
    const amount = key === 'data' && isHex(inner) && inner.length === 66;
    return [key, amount ? toHex(word(BigInt(inner) * 1000n)) : inflated(inner)];
  });
  return Object.fromEntries(entries);
}

/** Methods whose answers have logs. */
const OF_LOGS = /Logs|Receipt/;
/** Methods whose answers are encoded bytes. A forger does not answer them, because the bytes would contradict the lie. */
const IN_BYTES = ['rsk_getRawTransactionReceiptByHash', 'rootlight_getHeaders', 'rootlight_getWitness', 'rootlight_getBlockWitness'];

/** The position of the state root among a header's fields. */
const STATE_ROOT = 3;

/** The newest block with another state root, its bytes reversed, and the hash that follows from it. */
async function madeUp(exchange: Exchange, number: string): Promise<{ stateRoot: string; hash: string }> {
  const raw = String(await uncheckedAnswer(exchange, 'rsk_getRawBlockHeaderByNumber', number));
  const items = decodeList(fromHex(raw)).slice();
  const root = (items[STATE_ROOT] ?? new Uint8Array()).slice().reverse();
  items[STATE_ROOT] = root;
  return { stateRoot: toHex(root), hash: toHex(readHeader(encodeList(items)).hash) };
}

/** The lie about a whole block. */
function block(exchange: Exchange, head: string): (call: Call, reply: Reply) => Promise<Reply> {
  const made = madeUp(exchange, head);
  return async (call, reply) => {
    const given = reply.result as Json | null | undefined;
    if (!call.method.startsWith('eth_getBlockBy') || given?.['number'] !== head) return reply;
    return withResult(reply, { ...given, ...(await made) });
  };
}

/** An upstream that tells a lie. `head` is the number of the newest block. */
export function lying(honest: Exchange, name: LieName, head: string): Exchange {
  const exchange = without(honest, IN_BYTES);
  if (name === 'balance') return through(exchange, balance);
  if (name === 'token') return through(exchange, token);
  if (name === 'block') return through(exchange, block(exchange, head));
  return through(exchange, (call, reply) => (OF_LOGS.test(call.method) && reply.result !== undefined ? withResult(reply, inflated(reply.result)) : reply));
}
