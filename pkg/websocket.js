// JSON-RPC exchanges with an upstream over one WebSocket. Like transport.js, this file moves bytes, and the WebAssembly module verifies them.
import { checkMembers } from './message.js';
import { meter } from './meter.js';
import { NO_CONNECTION, TIME_OVER } from './upstream-words.js';

/** Time limit of one exchange, in milliseconds. */
const TIMEOUT = 20_000;

/** Size limit of one message of the node, in characters: the limit of transport.js for bytes. */
const MAX_LENGTH = 32 * 1024 * 1024;

/** Pauses after a failed connection, in milliseconds: the first, and the longest. */
const PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;

/** The number of failures after which the pause is the longest. */
const MOST_FAILURES = Math.ceil(Math.log2(LONGEST_PAUSE / PAUSE));

/** Most messages in a minute that belong to no exchange, and most characters of them together. */
const STRAYS = [64, 2 ** 20];

/**
 * The same limits for notifications of blocks, and for responses to calls whose exchange has ended: some nodes answer a batch in several
 * messages. Blocks come every half a minute, but a development chain can mine a hundred in a second.
 */
const NOTICES = [6_000, 16 * 2 ** 20];

/** Messages of more characters than this are searched for the id of an exchange before they are parsed, because parsing takes longer. */
const LONG = 64 * 1024;

/** The request that subscribes to new blocks. Calls of the module have ids from 1, so that the response to id 0 belongs to no exchange. */
const SUBSCRIBE = '{"jsonrpc":"2.0","id":0,"method":"eth_subscribe","params":["newHeads"]}';

/**
 * Makes the transport of a ws or wss address. Exchanges of one client share the connection and are told apart by the ids of their calls.
 * @param {string | URL} url
 * @param {{timeout?: number, maxLength?: number, WebSocket?: typeof WebSocket}} [options]
 */
export function webSocketTransport(url, options = {}) {
  checkMembers(options, 'webSocketTransport', ['timeout', 'maxLength', 'WebSocket']);
  const { timeout = TIMEOUT, maxLength = MAX_LENGTH, WebSocket = globalThis.WebSocket } = options;
  if (!WebSocket) throw new Error('this runtime has no WebSocket: give webSocketTransport one');
  checkAddress(url);
  /** Pending exchanges, oldest first, by the first id of each. */
  const waiting = new Map();
  /** The open connection, or the one that is being opened. */
  let socket;
  /** Number of failed connections in a row. */
  let failures = 0;
  /** The time, by the monotonic clock in milliseconds, before which no connection is opened. */
  let notBefore = 0;
  /** The listener to new blocks. */
  let onHead;
  let closed = false;
  /** The id after the greatest one that was sent. */
  let nextId = 0;
  const [strays, notices] = [STRAYS, NOTICES].map((limits) => meter(...limits));

  /** Requests notifications of new blocks. */
  function subscribe() {
    nextId = Math.max(nextId, 1);
    socket.send(SUBSCRIBE);
  }

  /** Opens a connection. The engine's own error would contain the whole address, so it is replaced. */
  function opened() {
    try {
      return new WebSocket(url);
    } catch (error) {
      throw new Error(`${error.name}: ${NO_CONNECTION}`);
    }
  }

  /** The connection; opens one if there is none. */
  function connection() {
    if (socket) return socket;
    if (closed) throw new Error('the transport is closed');
    if (performance.now() < notBefore) throw new Error(NO_CONNECTION);
    const opening = opened();
    socket = opening;
    opening.onopen = () => {
      if (onHead) subscribe();
      for (const { body } of waiting.values()) opening.send(body);
    };
    opening.onmessage = ({ data }) => socket === opening && take(data);
    opening.onclose = () => socket === opening && lost(new Error('connection lost'));
    opening.onerror = () => socket === opening && lost(new Error(NO_CONNECTION));
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

  /** Handles a message of the node. */
  function take(text) {
    if (typeof text !== 'string' || text.length > maxLength) {
      lost(new Error(`not a text of at most ${maxLength} characters`));
      return;
    }
    const message = (text.length > LONG && strayIn(text)) || parsed(text);
    // A notification of a block is only a hint to check for new blocks; its contents are ignored.
    if (message?.method === 'eth_subscription') {
      onHead?.();
      unasked(onHead ? notices : strays, text);
      return;
    }
    const id = idOf(message);
    // A response without an id belongs to the oldest exchange.
    const exchange = id === undefined ? waiting.values().next().value : owner(id);
    if (!exchange) {
      unasked(id < nextId ? notices : strays, text);
      return;
    }
    failures = 0;
    exchange.end(undefined, new TextEncoder().encode(text));
  }

  /** Counts a message of no exchange. A node that sends too many of them loses the connection for the longest pause. */
  function unasked(counter, text) {
    if (counter(text.length)) return;
    failures = Math.max(failures, MOST_FAILURES);
    lost(new Error('too many messages that were not asked for'));
  }

  /** The exchange to which an id belongs. */
  const owner = (id) => [...waiting.values()].find(({ first, count }) => id >= first && id < first + count);

  /** A message with the first id in a text, if none of the ids in the text belongs to an exchange; otherwise undefined. */
  function strayIn(text) {
    let first;
    for (const [, digits] of text.matchAll(ID)) {
      const id = Number(digits);
      if (owner(id)) return undefined;
      first ??= { id };
    }
    return first;
  }

  /** @param {string} body */
  function transport(body) {
    return new Promise((resolve, reject) => {
      const calls = [parsed(body)].flat();
      // Two clients that share the transport use the same ids, so that their responses could not be told apart.
      if (calls.some(({ id }) => owner(id))) throw new Error('a call with this id is pending: each client needs its own transport');
      const socket = connection();
      const first = calls[0].id;
      nextId = Math.max(nextId, first + calls.length);
      const timer = setTimeout(() => lost(new Error(TIME_OVER)), timeout);
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
      if (socket?.readyState === WebSocket.OPEN) subscribe();
    },
    close() {
      closed = true;
      lost(new Error('the transport is closed'));
    },
  });
}

/** The member `id` of a response in a JSON text. */
const ID = /"id"\s*:\s*(\d+)/g;

/** Refuses what is no URL, with an error that does not repeat the address. */
function checkAddress(url) {
  try {
    void new URL(url, globalThis.location?.href);
  } catch {
    throw new TypeError('the upstream\'s address is not a URL');
  }
}

/** The value of a JSON text; undefined if it is none. */
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
