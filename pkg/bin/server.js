// The program's server: JSON-RPC over HTTP and WebSocket, answered by a light client or a development chain of this package.
import { createHash } from 'node:crypto';
import { accessOf, checkOrigins, isExposed } from './access.js';
import { Usage } from './flags.js';
import { httpServer, messageMemory } from './http.js';
import { webSockets } from './sockets.js';

/** Default ports: those of the reference node. */
const HTTP_PORT = 4_444;
const WS_PORT = 4_445;

/** Most calls of one batch by default. */
const BATCH_LIMIT = 1_000;

/** The bits of a caller's kind, as pkg/wasm/src/callers.rs reads them. */
const SOCKET = 1;
const ADMITTED = 2;

/** Number of bytes of a number that JavaScript represents exactly. */
const EXACT_BYTES = 6;

/** A number made of an IP address, by which the module distinguishes callers. */
const askerOf = (address) => createHash('sha256').update(address).digest().readUIntBE(0, EXACT_BYTES);

/** Milliseconds that open requests have left to finish when the program ends. */
const DRAIN_TIME = 5_000;

/** The greatest port. */
const MAX_PORT = 65_535;

/** The host as a part of an address: IPv6 in brackets. */
const inAddress = (host) => (host.includes(':') ? `[${host}]` : host);

/** Listens; resolves to the port. */
function listen(server, host, port) {
  return new Promise((resolve, reject) => {
    const reasons = {
      EADDRINUSE: 'is in use: choose another port with --http-port and --ws-port',
      EADDRNOTAVAIL: 'is no address of this machine: choose one of its own with --host',
      EACCES: 'needs more rights: choose a port above 1023 with --http-port and --ws-port',
      ENOTFOUND: 'cannot be listened on, there is no such host: give a name or an address of this machine with --host',
    };
    server.once('error', ({ code, message }) => reject(new Error(reasons[code] ? `${inAddress(host)}:${port} ${reasons[code]}` : message)));
    server.listen(port, host, () => resolve(server.address().port));
  });
}

/** Resolves when the user or the system asks the program to end. */
const stopped = () => new Promise((resolve) => ['SIGINT', 'SIGTERM'].forEach((signal) => process.once(signal, resolve)));

/**
 * Serves until Ctrl-C or SIGTERM; rejects if the client ends by itself.
 * @param {import('../provider.js').Link} link
 * @param {ReturnType<typeof import('../life.js').newLife>} life that of the link
 * @param {Record<string, any>} flags
 * @param {{interval: number, announce?: (endpoints: {http: string, websockets: string[]}) => void | Promise<void>, onChanged?: (changed: () => void) => void}} settings
 * `interval`: milliseconds between two polls of subscriptions; `announce` is called once the server listens; `onChanged` gets the function to
 * call when the chain may have changed
 */
export async function serve(link, life, flags, { interval, announce, onChanged }) {
  const { host = '127.0.0.1', 'http-port': httpPort, 'ws-port': wsPort, 'batch-limit': batchLimit = BATCH_LIMIT } = flags;
  for (const [flag, port] of [['--http-port', httpPort], ['--ws-port', wsPort]]) {
    if (port > MAX_PORT) throw new Usage(`${flag}: ${port} is not a port`);
  }
  checkOrigins(flags.cors);
  const access = accessOf({ host, allowHost: flags['allow-host'], cors: flags.cors });
  if (access.warning) console.error(`warning: ${access.warning}`);

  /** Requests and WebSockets so far. */
  let count = 0;
  /** A caller, as the parameters of `requestFrom` in pkg/wasm/src/callers.rs: origin, number of the address, number of the request, kind. */
  const callerOf = ({ socket }, { origin, admitted }, isSocket) => {
    count += 1;
    return [origin, askerOf(socket.remoteAddress ?? ''), count, (isSocket ? SOCKET : 0) + (admitted ? ADMITTED : 0)];
  };
  /** Answers a message of a caller. */
  async function answer(caller, message, onFilter) {
    const text = await link.send(message, true, undefined, onFilter, caller);
    // After the answer is sent, so that a caller has the id of a subscription before its first notification.
    if (link.takeChanged()) setImmediate(sockets.changed);
    return text;
  }
  /** Whether the client or chain can answer about its newest block, for `/health`. */
  async function health() {
    const { result } = JSON.parse(await link.send('{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'));
    return result === undefined ? { ready: false } : { ready: true, blockNumber: Number(result) };
  }
  const memory = messageMemory();
  const sockets = webSockets({ access, memory, callerOf, answer });
  /** Starts a server on a port. */
  const bound = async (port) => {
    const server = httpServer({ access, batchLimit, memory, callerOf, answer, health });
    server.on('upgrade', sockets.upgrade);
    return { server, address: `${inAddress(host)}:${await listen(server, host, port)}` };
  };
  const main = await bound(httpPort ?? HTTP_PORT);
  // A user who chooses the main port does not expect a second fixed one.
  const second = wsPort ?? (httpPort === undefined ? WS_PORT : undefined);
  const more = second === undefined ? [] : [await bound(second)];
  const timer = setInterval(sockets.changed, interval);
  onChanged?.(sockets.changed);
  const all = [main, ...more];
  if (isExposed(host)) {
    console.error(
      `warning: LISTENING ON ${main.address}: every machine that reaches this address may call every method without a password, and may use the keys of a development chain. The Host header of requests must be an IP address or a name given by --allow-host.`,
    );
  }
  await announce?.({ http: `http://${main.address}`, websockets: all.map(({ address }) => `ws://${address}`) });
  // Scripts wait for this line.
  console.log(`listening http://${main.address} ws://${main.address}`);

  const ended = new Promise((_, reject) => life.onEnd(reject));
  try {
    await Promise.race([stopped(), ended]);
  } finally {
    clearInterval(timer);
    sockets.close();
    await Promise.all(all.map(({ server }) => close(server)));
  }
}

/** Closes a server once its open requests are answered, or after some time. */
function close(server) {
  return new Promise((resolve) => {
    server.close(resolve);
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), DRAIN_TIME).unref();
  });
}
