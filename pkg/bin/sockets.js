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

/**
 * Serves WebSockets.
 * @param {{access: ReturnType<typeof import('./access.js').accessOf>, callerOf: Function, answer: Function}} service
 */
export function webSockets({ access, callerOf, answer }) {
  const server = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BYTES, perMessageDeflate: false });
  /** What looks for news of each open WebSocket. */
  const looks = new Map();

  function open(socket, caller) {
    /** The ids of its subscriptions. */
    const ids = new Set();
    let [working, silent, closed] = [0, 0, false];
    const end = (id) => void Promise.resolve(answer(caller, request('eth_unsubscribe', id))).catch(() => {});
    const heard = (id, made, isSubscription) => {
      if (!isSubscription) return;
      if (!made) ids.delete(id);
      // The answer came too late.
      else if (closed) queueMicrotask(() => end(id));
      else ids.add(id);
    };

    function write(text) {
      if (socket.bufferedAmount > UNSENT) socket.terminate();
      else socket.send(text);
    }

    async function take(data) {
      silent = 0;
      working += 1;
      if (working >= AT_ONCE) socket.pause();
      try {
        const text = await answer(caller, data.toString(), heard);
        if (text !== undefined && !closed) write(text);
      } catch {
        socket.close(GOING_AWAY);
      }
      working -= 1;
      if (!closed && working < AT_ONCE) socket.resume();
    }

    /** Sends what is new of one subscription. What cannot be proven now comes later. */
    async function tell(id) {
      const { result, error } = JSON.parse(await answer(caller, request('eth_getFilterChanges', id)));
      // Something was missed: the client connects anew.
      if (error?.code === NOT_FOUND && ids.has(id)) socket.close(TRY_LATER);
      for (const news of result ?? []) {
        if (ids.has(id)) write(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: id, result: news } }));
      }
    }

    let [looking, again] = [false, false];
    /** Looks for news, one look at a time. */
    async function look() {
      again = true;
      if (looking) return;
      looking = true;
      while (again && !closed) {
        again = false;
        for (const id of [...ids]) await tell(id).catch(() => {});
      }
      looking = false;
    }

    const pinging = setInterval(() => {
      silent += 1;
      if (silent > SILENT_PINGS) socket.terminate();
      else socket.ping();
    }, PING);
    looks.set(socket, look);
    socket.on('pong', () => (silent = 0));
    socket.on('message', take);
    socket.on('error', () => {});
    socket.on('close', () => {
      closed = true;
      clearInterval(pinging);
      looks.delete(socket);
      for (const id of ids) end(id);
    });
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
