// EIP-1193 calls to JSON-RPC messages, and their answers back.
import { failure } from './life.js';

/** JSON-RPC: the request itself is unusable. */
export const INVALID_REQUEST = -32600;

/** JSON-RPC: something broke on our side. */
const INTERNAL = -32603;

/** What servers answer for a revert, and what wallets expect: some libraries decode its reason for that code only. */
const REVERTED_ON_SERVER = -32015;
const REVERTED = 3;

/** The JSON-RPC request for what the caller passed. */
export function message(call) {
  if (call === null || typeof call !== 'object') throw failure(INVALID_REQUEST, 'request takes an object with method and params');
  const { method, params } = call;
  try {
    return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  } catch {
    throw failure(INVALID_REQUEST, 'method and params must be representable as JSON');
  }
}

/** The result in a JSON-RPC answer; throws its error. */
export function result(answer) {
  if (answer === undefined) throw failure(INTERNAL, 'no answer');
  const { result: value, error } = JSON.parse(answer);
  if (error === undefined) return value;
  const code = error.code === REVERTED_ON_SERVER ? REVERTED : error.code;
  throw Object.assign(failure(code, error.message), 'data' in error && { data: error.data });
}

/** Does some work of the module's; what it throws are texts about options. */
export function withOptions(work) {
  try {
    return work();
  } catch (reason) {
    throw typeof reason === 'string' ? failure(INVALID_REQUEST, reason) : reason;
  }
}
