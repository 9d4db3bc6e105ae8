// JSON-RPC exchanges with an upstream over HTTP. This file moves bytes; the WebAssembly module verifies them.
import { checkMembers } from './message.js';

/** Time limit of one exchange, in milliseconds. A batch of blocks from a slow node takes seconds. */
const TIMEOUT = 20_000;

/** Size limit of one response, in bytes. A batch of 50 full blocks is smaller. */
const MAX_BYTES = 32 * 1024 * 1024;

/** HTTP statuses whose body is a JSON-RPC response; nodes send JSON-RPC errors with 200 or 400. */
const WITH_RESPONSE = new Set([200, 400]);

/**
 * Splits an address with user and password into the address and the header for them, as HTTP clients other than fetch
 * do. fetch refuses such addresses with an error that contains the whole address.
 */
function withoutUser(given) {
  let url;
  try {
    url = new URL(given, globalThis.location?.href);
  } catch {
    throw new TypeError('the upstream\'s address is not a URL');
  }
  if (!url.username && !url.password) return { url };
  const pair = new TextEncoder().encode([url.username, url.password].map(decodeURIComponent).join(':'));
  url.username = '';
  url.password = '';
  return { url, authorization: { authorization: `Basic ${btoa(String.fromCharCode(...pair))}` } };
}

/**
 * Makes the transport of an http or https address.
 * @param {string | URL} given the address
 * @param {{headers?: Record<string, string>, timeout?: number, maxBytes?: number, fetch?: typeof fetch}} [options]
 * @returns {(body: string) => Promise<Uint8Array>}
 */
export function httpTransport(given, options = {}) {
  checkMembers(options, 'httpTransport', ['headers', 'timeout', 'maxBytes', 'fetch']);
  const { url, authorization } = withoutUser(given);
  // Looked up for each exchange: a page may replace its `fetch` later.
  const { headers, timeout = TIMEOUT, maxBytes = MAX_BYTES, fetch = (...asked) => globalThis.fetch(...asked) } = options;
  return async (body) => {
    const response = await fetch(url.href, {
      method: 'POST',
      headers: { ...authorization, ...headers, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(timeout),
      // The node gets no cookies and no URL of the page, only its origin, which fetch sends. Redirects to other hosts are errors.
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    });
    if (!WITH_RESPONSE.has(response.status)) {
      await response.body?.cancel();
      throw failed(response);
    }
    return readUpTo(response, maxBytes);
  };
}

/** HTTP statuses of a node that asks clients to wait. */
const BUSY = new Set([429, 503]);

/** The error for an HTTP status. For a busy node it has `retryAfter` in seconds, or null if the node names no time. */
function failed({ status, headers }) {
  const error = Object.assign(new Error(`HTTP status ${status}`), { status });
  if (!BUSY.has(status)) return error;
  // A number of seconds or a date.
  const after = headers.get('retry-after');
  const seconds = Number(after);
  const pause = Number.isNaN(seconds) ? (Date.parse(after) - Date.now()) / 1000 : seconds;
  return Object.assign(error, { retryAfter: pause > 0 ? Math.ceil(pause) : null });
}

/** Reads the body of a response; fails if it is longer than `maxBytes`. */
async function readUpTo(response, maxBytes) {
  if (!response.body) return new Uint8Array(0);
  const reader = response.body.getReader();
  const pieces = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > maxBytes) {
      await reader.cancel();
      throw new Error(`answer larger than ${maxBytes} bytes`);
    }
    pieces.push(part.value);
  }
  const all = new Uint8Array(size);
  let offset = 0;
  for (const piece of pieces) {
    all.set(piece, offset);
    offset += piece.length;
  }
  return all;
}
