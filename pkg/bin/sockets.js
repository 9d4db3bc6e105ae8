// JSON-RPC over WebSocket for the program's server, with the notifications of subscriptions. The library `ws` reads and writes frames.
import { WebSocketServer } from 'ws';
import { MESSAGE_BYTES, errorBody, logFailure } from './http.js';

/** Most open WebSockets. */
const SOCKETS = 1_024;

/** Most messages of one WebSocket that are answered at the same time; then reading pauses. */
const AT_ONCE = 16;

/** Milliseconds between two pings, and the number of pings without a sign of the client after which its WebSocket is closed. */
const PING = 30_000;
const SILENT_PINGS = 3;

/** Most bytes that may wait to be sent to one WebSocket: a client that reads too slowly is disconnected. */
const UNSENT = 16 * 2 ** 20;

/** Close codes of WebSockets: the server ends; and the client should connect again later, after a loss of events or a lack of memory. */
const GOING_AWAY = 1001;
const TRY_LATER = 1013;

/** The module's error code for a subscription that does not exist. */
const NOT_FOUND = -32_000;

/** A request with one parameter, the id of a subscription. */
const request = (method, id) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [id] });

/** Refuses a handshake. */
function refuse(stream, status, reason, text) {
  const body = errorBody(-32_600, text);
  stream.end(`HTTP/1.1 ${status} ${reason}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** Ends a connection whose client does not respond to pings. */
function endSilent(socket) {
  let silent = 0;
  const isAlive = () => (silent = 0);
  const pinging = setInterval(() => {
    silent += 1;
    if (silent > SILENT_PINGS) socket.terminate();
    else socket.ping();
  }, PING);
  socket.on('pong', isAlive);
  socket.on('message', isAlive);
  socket.on('close', () => clearInterval(pinging));
}

/**
 * The subscriptions of a connection.
 * @param {import('ws').WebSocket} socket
 * @param {(message: string) => Promise<string | undefined>} ask asks the module as the caller of this connection
 * @param {(text: string) => void} write sends a text to the client
 */
function subscriptionsOf(socket, ask, write) {
  const ids = new Set();
  let closed = false;
  /** Ends a subscription in the module. */
  const end = (id) => void Promise.resolve(ask(request('eth_unsubscribe', id))).catch(() => {});

  /** Sends the new events of one subscription. Events that cannot be proven now are sent later. */
  async function sendEvents(id) {
    const { result, error } = JSON.parse(await ask(request('eth_getFilterChanges', id)));
    // The subscription has expired, so that events are lost: the client has to connect again.
    if (error?.code === NOT_FOUND && ids.has(id)) socket.close(TRY_LATER);
    for (const event of result ?? []) {
      if (ids.has(id)) write(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: id, result: event } }));
    }
  }

  /** Whether a poll runs, and whether another one has to follow. */
  let [polling, again] = [false, false];
  return {
    /** The callback `OnFilter` of provider.js. */
    onFilter(id, isMade, isSubscription) {
      if (!isSubscription) return;
      if (!isMade) ids.delete(id);
      // The connection closed before the answer came. The module is busy with that answer now.
      else if (closed) queueMicrotask(() => end(id));
      else ids.add(id);
    },
    /** Polls all subscriptions, one poll at a time. */
    async poll() {
      again = true;
      if (polling) return;
      polling = true;
      while (again && !closed) {
        again = false;
        for (const id of [...ids]) await sendEvents(id).catch(() => {});
      }
      polling = false;
    },
    /** Ends all subscriptions. */
    close() {
      closed = true;
      for (const id of ids) end(id);
    },
  };
}

/**
 * Serves WebSockets.
 * @param {{access: ReturnType<typeof import('./access.js').accessOf>, memory: ReturnType<typeof import('./http.js').messageMemory>, callerOf: Function, answer: Function}} service
 */
export function webSockets({ access, memory, callerOf, answer }) {
  const server = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BYTES, perMessageDeflate: false });
  /** The functions that poll the subscriptions of each open WebSocket. */
  const polls = new Map();

  /** Serves one WebSocket. */
  function open(socket, caller) {
    /** Number of messages that are being answered, and whether the WebSocket is closed. */
    let [working, closed] = [0, false];

    /** Sends a text, or disconnects a client that reads too slowly. */
    function write(text) {
      if (socket.bufferedAmount > UNSENT) socket.terminate();
      else socket.send(text);
    }

    const subscriptions = subscriptionsOf(socket, (...request) => answer(caller, ...request), write);

    /** Answers a message. */
    async function take(data) {
      working += 1;
      if (working >= AT_ONCE) socket.pause();
      try {
        if (!memory.add(data.length)) return socket.close(TRY_LATER);
        const text = await answer(caller, data.toString(), subscriptions.onFilter);
        if (text !== undefined && !closed) write(text);
      } catch (error) {
        logFailure('a WebSocket is closed, its message failed', error);
        socket.close(GOING_AWAY);
      } finally {
        memory.remove(data.length);
        working -= 1;
        if (!closed && working < AT_ONCE) socket.resume();
      }
      return undefined;
    }

    polls.set(socket, subscriptions.poll);
    socket.on('message', take);
    socket.on('error', () => {});
    socket.on('close', () => {
      closed = true;
      polls.delete(socket);
      subscriptions.close();
    });
    endSilent(socket);
  }

  return {
    /** Handles the event `upgrade` of an HTTP server. */
    upgrade(message, stream, head) {
      stream.on('error', () => {});
      const page = access.check(message.headersDistinct);
      if (page.refused) return refuse(stream, 403, 'Forbidden', page.refused);
      if (!['/', '/websocket'].includes(message.url.split('?')[0])) return refuse(stream, 404, 'Not Found', 'the WebSocket is at / and /websocket');
      if (server.clients.size >= SOCKETS) return refuse(stream, 503, 'Service Unavailable', 'too many WebSocket connections');
      return server.handleUpgrade(message, stream, head, (socket) => open(socket, callerOf(message, page, true)));
    },
    /** Polls all subscriptions, because the chain may have changed. */
    changed: () => polls.forEach((poll) => void poll()),
    close: () => server.clients.forEach((socket) => socket.close(GOING_AWAY)),
  };
}
