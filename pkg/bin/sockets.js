// JSON-RPC over WebSocket, with the notifications of subscriptions. The library `ws` reads and writes frames.
import { WebSocketServer } from 'ws';
import { MESSAGE_BYTES, errorBody } from './http.js';

/** Most open WebSockets. */
const SOCKETS = 1_024;

/** Messages of one WebSocket that are answered at the same time. */
const AT_ONCE = 16;

/** Milliseconds between two pings; a WebSocket that was silent for three of these is closed. */
const PING = 30_000;
const SILENT_PINGS = 3;

/** Bytes that may wait to be sent to one WebSocket. */
const UNSENT = 16 * 2 ** 20;

/** Close codes: the server goes away, and try again later. */
const GOING_AWAY = 1001;
const TRY_LATER = 1013;

/** The error code of a subscription that does not exist. */
const NOT_FOUND = -32_000;

const request = (method, id) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [id] });

/** Refuses a handshake. */
function refuse(stream, status, reason, text) {
  const body = errorBody(-32_600, text);
  stream.end(`HTTP/1.1 ${status} ${reason}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** Ends a connection whose client has gone without a word. */
function endSilent(socket) {
  let silent = 0;
  const heard = () => (silent = 0);
  const pinging = setInterval(() => {
    silent += 1;
    if (silent > SILENT_PINGS) socket.terminate();
    else socket.ping();
  }, PING);
  socket.on('pong', heard);
  socket.on('message', heard);
  socket.on('close', () => clearInterval(pinging));
}

/**
 * The subscriptions of a connection.
 * @param {import('ws').WebSocket} socket
 * @param {(message: string) => Promise<string | undefined>} ask
 * @param {(text: string) => void} write
 */
function subscriptionsOf(socket, ask, write) {
  const ids = new Set();
  let closed = false;
  const end = (id) => void Promise.resolve(ask(request('eth_unsubscribe', id))).catch(() => {});

  /** Sends what is new of one subscription. What cannot be proven now comes later. */
  async function tell(id) {
    const { result, error } = JSON.parse(await ask(request('eth_getFilterChanges', id)));
    // Something was missed: the client connects anew.
    if (error?.code === NOT_FOUND && ids.has(id)) socket.close(TRY_LATER);
    for (const news of result ?? []) {
      if (ids.has(id)) write(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: id, result: news } }));
    }
  }

  let [looking, again] = [false, false];
  return {
    /** What the module tells of an answer that made or ended a filter. */
    heard(id, made, isSubscription) {
      if (!isSubscription) return;
      if (!made) ids.delete(id);
      // The answer came too late.
      else if (closed) queueMicrotask(() => end(id));
      else ids.add(id);
    },
    /** Looks for news, one look at a time. */
    async look() {
      again = true;
      if (looking) return;
      looking = true;
      while (again && !closed) {
        again = false;
        for (const id of [...ids]) await tell(id).catch(() => {});
      }
      looking = false;
    },
    close() {
      closed = true;
      for (const id of ids) end(id);
    },
  };
}

/**
 * Serves WebSockets.
 * @param {{access: ReturnType<typeof import('./access.js').accessOf>, callerOf: Function, answer: Function}} service
 */
export function webSockets({ access, callerOf, answer }) {
  const server = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BYTES, perMessageDeflate: false });
  /** The functions that look for news of each open WebSocket. */
  const looks = new Map();

  function open(socket, caller) {
    let [working, closed] = [0, false];

    function write(text) {
      if (socket.bufferedAmount > UNSENT) socket.terminate();
      else socket.send(text);
    }

    const subscriptions = subscriptionsOf(socket, (...request) => answer(caller, ...request), write);

    async function take(data) {
      working += 1;
      if (working >= AT_ONCE) socket.pause();
      try {
        const text = await answer(caller, data.toString(), subscriptions.heard);
        if (text !== undefined && !closed) write(text);
      } catch {
        socket.close(GOING_AWAY);
      }
      working -= 1;
      if (!closed && working < AT_ONCE) socket.resume();
    }

    looks.set(socket, subscriptions.look);
    socket.on('message', take);
    socket.on('error', () => {});
    socket.on('close', () => {
      closed = true;
      looks.delete(socket);
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
    /** Looks for news of all subscriptions, because the chain may have changed. */
    changed: () => looks.forEach((look) => void look()),
    close: () => server.clients.forEach((socket) => socket.close(GOING_AWAY)),
  };
}
