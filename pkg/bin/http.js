// JSON-RPC over HTTP: methods, content types, sizes, CORS and status codes, as docs/server.md states them for the native server.
import { createServer } from 'node:http';
import { withoutSecrets } from '../secrets.js';

/** Longest body of a request, and longest message of a WebSocket, in bytes: as in the native server. */
export const MESSAGE_BYTES = 5 * 2 ** 20;

/** Most bytes of all messages that are being read or answered at the same time: bounds the memory that unfinished requests take. */
const ALL_MESSAGES_BYTES = 64 * 2 ** 20;

/** Most open connections. */
const CONNECTIONS = 1_024;

/** Longest request line with headers, in bytes. */
const HEAD_BYTES = 16 * 1_024;

/** Time limits of a head, of a whole request, and of an idle connection, in milliseconds. */
const TIMES = { headersTimeout: 20_000, requestTimeout: 30_000, keepAliveTimeout: 20_000 };

/** The HTTP methods that the server answers. */
const VERBS = 'GET, POST, OPTIONS';
/** JSON-RPC error codes. */
const INVALID_REQUEST = -32_600;
const LIMIT_EXCEEDED = -32_005;
const INTERNAL_ERROR = -32_603;

/** The body of an HTTP error: a JSON-RPC error, so that clients that read bodies see the reason. */
export const errorBody = (code, message) => JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } });

/**
 * Writes to standard error, for the operator, why a message was not answered: in one line, without the secrets of addresses. Callers do not get
 * the reason, which may contain internals.
 * @param {string} what
 * @param {unknown} error
 */
export function logFailure(what, error) {
  console.error(`${what}: ${withoutSecrets(String(error)).replaceAll(/[\s\p{Cc}]+/gu, ' ')}`);
}

/** Sends a response, of JSON or without a body. */
function send(response, status, headers, body) {
  const type = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  response.writeHead(status, { ...headers, ...type });
  response.end(body);
}

/** The headers of the response to `OPTIONS`, which a browser requires before it lets a page POST JSON. */
function preflight({ headers }) {
  if (headers.origin === undefined) return { allow: VERBS };
  return {
    allow: VERBS,
    'access-control-allow-methods': VERBS,
    'access-control-allow-headers': 'content-type, accept',
    'access-control-max-age': '86400',
    // Chrome requires this header before a page of a public address may reach a private address, such as this machine's.
    ...(headers['access-control-request-private-network'] && { 'access-control-allow-private-network': 'true' }),
  };
}

/** Whether an answer is the error about a message that is no JSON-RPC request or batch at all, or a batch that is too long: HTTP status 400. */
function isUnusable(message, answer, batchLimit) {
  if (!answer.startsWith('{"jsonrpc":"2.0","id":null,"error"')) return false;
  try {
    const parsed = JSON.parse(message);
    return parsed === null || typeof parsed !== 'object' || (Array.isArray(parsed) && parsed.length > batchLimit);
  } catch {
    return true;
  }
}

/**
 * The memory that all messages of a program share, on all its ports, over HTTP and WebSocket. A message over WebSocket counts once it is whole,
 * because the library that reads it does not show its parts.
 */
export function messageMemory() {
  let used = 0;
  return {
    /** Counts bytes; returns whether they fit. */
    add(bytes) {
      used += bytes;
      return used <= ALL_MESSAGES_BYTES;
    },
    /** Ends the counting of bytes, also of those that did not fit. */
    remove(bytes) {
      used -= bytes;
    },
  };
}

/**
 * Returns the function that reads the body of a request. The function resolves to the
 * message, and to the function that ends its share of the limit, for the caller to call once the message is answered. It calls `refuse` for
 * a body that is too long, and resolves to undefined then.
 */
function bodyReader(memory) {
  return (request, refuse) =>
    new Promise((resolve) => {
      const pieces = [];
      let size = 0;
      let isRead = false;
      const release = () => {
        memory.remove(size);
        size = 0;
        pieces.length = 0;
      };
      const stop = (...refusal) => {
        request.removeAllListeners('data');
        release();
        // The rest of the body is read and dropped, until the time limit of the request: a client that is still sending would not see the answer.
        request.resume();
        refuse(...refusal);
        resolve(undefined);
      };
      if (Number(request.headers['content-length']) > MESSAGE_BYTES) return stop(413, LIMIT_EXCEEDED, `Request size limit of ${MESSAGE_BYTES} bytes exceeded`);
      request.on('data', (piece) => {
        size += piece.length;
        const fits = memory.add(piece.length);
        pieces.push(piece);
        if (size > MESSAGE_BYTES) stop(413, LIMIT_EXCEEDED, `Request size limit of ${MESSAGE_BYTES} bytes exceeded`);
        else if (!fits) stop(503, LIMIT_EXCEEDED, 'no memory for the request at the moment');
      });
      request.on('end', () => {
        isRead = true;
        resolve({ message: Buffer.concat(pieces).toString(), release });
        pieces.length = 0;
      });
      request.on('error', () => resolve(undefined));
      request.on('close', () => {
        // Node.js closes a request as soon as its body is read, which may be long before the answer.
        if (isRead) return;
        release();
        resolve(undefined);
      });
      return undefined;
    });
}

/**
 * A server that is not listening yet.
 * @param {{access: ReturnType<typeof import('./access.js').accessOf>, batchLimit: number, memory: ReturnType<typeof messageMemory>, callerOf: Function, answer: Function, health: () => Promise<object>}} service
 */
export function httpServer({ access, batchLimit, memory, callerOf, answer, health }) {
  const read = bodyReader(memory);

  /** Answers a JSON-RPC message. `page` are the rights of the caller's page, `cors` the headers for it. */
  async function post(request, response, page, cors) {
    const refuse = (status, code, text) => send(response, status, cors, errorBody(code, text));
    const [type] = (request.headers['content-type'] ?? '').split(';');
    if (!/^application\/json(?:-rpc)?$/i.test(type.trim())) return refuse(415, INVALID_REQUEST, 'content type must be application/json');
    const body = await read(request, refuse);
    if (body === undefined) return undefined;
    const { message, release } = body;
    try {
      const text = await answer(callerOf(request, page), message);
      if (text === undefined) return send(response, 204, cors);
      return send(response, isUnusable(message, text, batchLimit) ? 400 : 200, cors, text);
    } finally {
      release();
    }
  }

  /** Answers an HTTP request. */
  async function handle(request, response) {
    const page = access.check(request.headersDistinct);
    if (page.refused) return send(response, 403, {}, errorBody(INVALID_REQUEST, page.refused));
    const cors = access.cors(request.headersDistinct);
    const [path] = request.url.split('?');
    if (request.method === 'POST') return post(request, response, page, cors);
    if (request.method === 'OPTIONS') return send(response, 204, { ...cors, ...preflight(request) });
    if (request.method === 'GET' && path === '/livez') return send(response, 200, cors, '{}');
    if (request.method === 'GET' && ['/health', '/readyz'].includes(path)) {
      const state = await health();
      return send(response, state.ready ? 200 : 503, cors, JSON.stringify(state));
    }
    return send(response, 405, { ...cors, allow: VERBS }, errorBody(INVALID_REQUEST, 'send JSON-RPC requests with POST'));
  }

  const server = createServer({ ...TIMES, maxHeaderSize: HEAD_BYTES }, (request, response) => {
    handle(request, response).catch((error) => {
      logFailure('a request failed with HTTP status 500', error);
      if (!response.headersSent) send(response, 500, { connection: 'close' }, errorBody(INTERNAL_ERROR, 'Internal server error'));
    });
  });
  server.maxConnections = CONNECTIONS;
  return server;
}
