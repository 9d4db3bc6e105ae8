// Converts EIP-1193 calls to JSON-RPC requests, and responses to results.
import { failure } from './life.js';

/** JSON-RPC error code of an invalid request. */
export const INVALID_REQUEST = -32600;

/** JSON-RPC error code of an internal error. */
const INTERNAL = -32603;

/** Error codes of a revert: that of the module and of nodes, and that of wallets. Some libraries decode the reason only for that of wallets. */
const REVERTED_ON_SERVER = -32015;
const REVERTED = 3;

/** Names of methods that JSON writes without escapes. */
const PLAIN = /^\w+$/;

/** The JSON-RPC request for a call of EIP-1193. */
export function message(call) {
  if (call === null || typeof call !== 'object') throw failure(INVALID_REQUEST, 'request takes an object with method and params');
  const { method, params } = call;
  try {
    // Joining texts takes half the time of `JSON.stringify` of the whole request, which is used for other names, and for params that JSON
    // leaves out, such as undefined.
    const given = JSON.stringify(params);
    if (typeof method !== 'string' || !PLAIN.test(method) || given === undefined) return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${given}}`;
  } catch {
    throw failure(INVALID_REQUEST, 'method and params must be representable as JSON');
  }
}

/** A response whose result is hexadecimal. Most are, and reading the result by this expression takes a third of the time of parsing JSON. */
const HEXADECIMAL = /^\{"jsonrpc":"2\.0","id":1,"result":"(0x[\da-f]*)"\}$/;

/** The members of a response that may be beside its result: see the type `Answer` in index.d.ts. */
const MARKS = ['level', 'start', 'bitcoin'];

/**
 * The result in a JSON-RPC response, with its marks: its level if it is less than proven, its start if no block is trusted, and what
 * Bitcoin's chain does not confirm. Throws the response's error.
 */
export function answered(answer) {
  if (answer === undefined) throw failure(INTERNAL, 'no answer');
  const [, hexadecimal] = HEXADECIMAL.exec(answer) ?? [];
  if (hexadecimal !== undefined) return { result: hexadecimal };
  const parsed = JSON.parse(answer);
  const { result, error } = parsed;
  if (error === undefined) {
    const marked = { result };
    for (const mark of MARKS) if (parsed[mark]) marked[mark] = parsed[mark];
    return marked;
  }
  const code = error.code === REVERTED_ON_SERVER ? REVERTED : error.code;
  throw Object.assign(failure(code, error.message), 'data' in error && { data: error.data });
}

/** Refuses options with an unknown member: a misspelt option would have no effect otherwise. The module checks its own options. */
export function checkMembers(options, name, known) {
  const other = Object.keys(options).find((member) => !known.includes(member) && options[member] !== undefined);
  if (other !== undefined) throw failure(INVALID_REQUEST, `${name}: unknown field \`${other.slice(0, 40)}\``);
}

/** The names of the networks that the modules know. */
export const NETWORKS = 'mainnet, testnet, testnet2, devnet or regtest';

/** Runs work of the module that parses options. The module throws strings, of which this makes errors. */
export function withOptions(work) {
  try {
    return work();
  } catch (reason) {
    if (typeof reason !== 'string') throw reason;
    throw failure(INVALID_REQUEST, /^network: '.*' is not known$/s.test(reason) ? `${reason}: give ${NETWORKS}` : reason);
  }
}

/** Whether a value is a Uint8Array, also one of another frame, whose class is another object. */
export const isBytes = (value) => Object.prototype.toString.call(value) === '[object Uint8Array]';
