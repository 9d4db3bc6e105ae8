// JSON-RPC exchanges with an upstream over one WebSocket. Like transport.js, this file moves bytes; the module
// verifies them.
import { checkMembers } from './message.js';

/** Time limit of one exchange, in milliseconds. */
const TIMEOUT = 20_000;

/** Size limit of one answer, in characters. */
const MAX_LENGTH = 32 * 1024 * 1024;

/** Pauses after a failed connection, in milliseconds: the first, and the longest. */
const PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;

/** Subscribes to new blocks. Calls have ids from 1, so an error response to this request (id 0) is ignored. */
const SUBSCRIBE = '{"jsonrpc":"2.0","id":0,"method":"eth_subscribe","params":["newHeads"]}';

/**
 * @param {string | URL} url
 * @param {{timeout?: number, maxLength?: number, WebSocket?: typeof WebSocket}} [options]
 */
export function webSocketTransport(url, options = {}) {
  checkMembers(options, 'webSocketTransport', ['timeout', 'maxLength', 'WebSocket']);
  const { timeout = TIMEOUT, maxLength = MAX_LENGTH, WebSocket = globalThis.WebSocket } = options;
  if (!WebSocket) throw new Error('this runtime has no WebSocket: give webSocketTransport one');
  const host = hostOf(url);
  /** Pending exchanges, oldest first, by the first id of each. */
  const waiting = new Map();
  let socket;
  let failures = 0;
  let notBefore = 0;
  let onHead;
  let closed = false;

  /** Opens a connection. The engine's own error would contain the whole address, so it is replaced. */
  function opened() {
    try {
      return new WebSocket(url);
    } catch (error) {
      throw new Error(`no connection to ${host}: ${error.name}`);
    }
  }

  function connection() {
    if (socket) return socket;
    if (closed) throw new Error('the transport is closed');
    if (performance.now() < notBefore) throw new Error(`no connection to ${host}`);
    const opening = opened();
    socket = opening;
    opening.onopen = () => {
      if (onHead) opening.send(SUBSCRIBE);
      for (const { body } of waiting.values()) opening.send(body);
    };
    opening.onmessage = ({ data }) => take(data);
    opening.onclose = () => socket === opening && lost(new Error('connection lost'));
    opening.onerror = () => socket === opening && lost(new Error(`no connection to ${host}`));
    return opening;
  }

  /**
   * Ends the connection and rejects the pending exchanges. The next exchange opens another one, after a pause that grows
   * with each failure.
   */
  function lost(error) {
    const old = socket;
    socket = undefined;
    old?.close();
    notBefore = performance.now() + Math.min(PAUSE * 2 ** failures, LONGEST_PAUSE);
    failures += 1;
    for (const exchange of waiting.values()) exchange.end(error);
  }

  function take(text) {
    if (typeof text !== 'string' || text.length > maxLength) {
      lost(new Error(`not a text of at most ${maxLength} characters`));
      return;
    }
    const message = parsed(text);
    // The notification is only a hint to poll; its contents are ignored.
    if (message?.method === 'eth_subscription') {
      onHead?.();
      return;
    }
    const id = idOf(message);
    // A response without an id belongs to the oldest exchange.
    const exchange = id === undefined ? waiting.values().next().value : owner(id);
    if (!exchange) return;
    failures = 0;
    exchange.end(undefined, new TextEncoder().encode(text));
  }

  const owner = (id) => [...waiting.values()].find(({ first, count }) => id >= first && id < first + count);

  /** @param {string} body */
  function transport(body) {
    return new Promise((resolve, reject) => {
      const calls = [parsed(body)].flat();
      // Two clients share the transport and use the same ids, so their responses could not be told apart.
      if (calls.some(({ id }) => owner(id))) throw new Error('a call with this id is pending: each client needs its own transport');
      const socket = connection();
      const first = calls[0].id;
      const timer = setTimeout(() => lost(new Error(`no response in ${timeout} ms`)), timeout);
      timer.unref?.();
      const end = (error, bytes) => {
        clearTimeout(timer);
        waiting.delete(first);
        if (error) reject(error);
        else resolve(bytes);
      };
      waiting.set(first, { body, first, count: calls.length, end });
      if (socket.readyState === WebSocket.OPEN) socket.send(body);
    });
  }

  return Object.assign(transport, {
    /** Calls back whenever the node announces a block. */
    heads(listener) {
      onHead = listener;
      if (socket?.readyState === WebSocket.OPEN) socket.send(SUBSCRIBE);
    },
    close() {
      closed = true;
      lost(new Error('the transport is closed'));
    },
  });
}

function hostOf(url) {
  try {
    return new URL(url, globalThis.location?.href).host;
  } catch {
    throw new TypeError('the upstream\'s address is not a URL');
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The first id in a response; undefined if it has none. */
function idOf(message) {
  const answers = Array.isArray(message) ? message : [message];
  return answers.map((answer) => answer?.id).find((id) => typeof id === 'number');
}
