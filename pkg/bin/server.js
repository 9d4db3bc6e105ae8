// A server of JSON-RPC over HTTP and WebSocket, in front of a client or a chain of this package.
import { createHash } from 'node:crypto';
import { accessOf, checkOrigins, isExposed } from './access.js';
import { Usage } from './flags.js';
import { httpServer } from './http.js';
import { webSockets } from './sockets.js';

/** Ports of the reference node. */
const HTTP_PORT = 4_444;
const WS_PORT = 4_445;

/** Calls of one batch by default. */
const BATCH_LIMIT = 1_000;

/** The bits of a caller's kind, as pkg/wasm/src/callers.rs reads them. */
const SOCKET = 1;
const ADMITTED = 2;

/** The bytes of a number that JavaScript holds exactly. */
const EXACT = 6;

/** A number for an address, by which callers are told apart. */
const askerOf = (address) => createHash('sha256').update(address).digest().readUIntBE(0, EXACT);

/** Milliseconds that open requests get to finish. */
const DRAIN = 5_000;

const MOST_PORTS = 65_535;

/** The host as a part of an address. */
const named = (host) => (host.includes(':') ? `[${host}]` : host);

function listen(server, host, port) {
  return new Promise((resolve, reject) => {
    const reasons = {
      EADDRINUSE: 'is in use: choose another port with --http-port and --ws-port',
      EADDRNOTAVAIL: 'is no address of this machine: choose one of its own with --host',
      EACCES: 'needs more rights: choose a port above 1023 with --http-port and --ws-port',
      ENOTFOUND: 'cannot be listened on, there is no such host: give a name or an address of this machine with --host',
    };
    server.once('error', ({ code, message }) => reject(new Error(reasons[code] ? `${named(host)}:${port} ${reasons[code]}` : message)));
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
 * @param {{interval: number, announce?: (endpoints: {http: string, websockets: string[]}) => void | Promise<void>, hear?: (changed: () => void) => void}} settings
 * `interval`: milliseconds between two looks for news that no message has caused; `hear` is given what to call when there may be news
 */
export async function serve(link, life, flags, { interval, announce, hear }) {
  const { host = '127.0.0.1', 'http-port': httpPort, 'ws-port': wsPort, 'batch-limit': batchLimit = BATCH_LIMIT } = flags;
  for (const [flag, port] of [['--http-port', httpPort], ['--ws-port', wsPort]]) {
    if (port > MOST_PORTS) throw new Usage(`${flag}: ${port} is not a port`);
  }
  checkOrigins(flags.cors);
  const access = accessOf({ host, allowHost: flags['allow-host'], cors: flags.cors });
  if (access.warning) console.error(`warning: ${access.warning}`);

  /** Requests and WebSockets so far. */
  let count = 0;
  const callerOf = ({ socket }, { origin, admitted }, isSocket) => {
    count += 1;
    return [origin, askerOf(socket.remoteAddress ?? ''), count, (isSocket ? SOCKET : 0) + (admitted ? ADMITTED : 0)];
  };
  async function answer(caller, message, heard) {
    const text = await link.send(message, true, undefined, heard, caller);
    if (link.takeChanged()) setImmediate(sockets.changed);
    return text;
  }
  async function health() {
    const { result } = JSON.parse(await link.send('{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'));
    return result === undefined ? { ready: false } : { ready: true, blockNumber: Number(result) };
  }
  const sockets = webSockets({ access, callerOf, answer });
  const bound = async (port) => {
    const server = httpServer({ access, batchLimit, callerOf, answer, health });
    server.on('upgrade', sockets.upgrade);
    return { server, address: `${named(host)}:${await listen(server, host, port)}` };
  };
  const main = await bound(httpPort ?? HTTP_PORT);
  // A user who chooses the main port does not expect a second fixed one.
  const second = wsPort ?? (httpPort === undefined ? WS_PORT : undefined);
  const more = second === undefined ? [] : [await bound(second)];
  const timer = setInterval(sockets.changed, interval);
  hear?.(sockets.changed);
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
    setTimeout(() => server.closeAllConnections(), DRAIN).unref();
  });
}
