// Clients that vanish in the middle of a message, and keys that are revoked while they are used.
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Milliseconds between two such clients. */
const KILLED = 150;
/** Milliseconds for which a key is used before it is revoked. */
const USED = 500;
/** Longest time in milliseconds until the WebSocket of a revoked key is closed. */
const CLOSED = 5_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends bytes over a raw connection, waits, and resets the connection. */
function kill(server, bytes, wait) {
  return new Promise((resolve) => {
    const target = { host: '127.0.0.1', port: server.port, rejectUnauthorized: false };
    const socket = server.secure ? connectTls(target) : connect(target);
    socket.on('error', () => {});
    socket.once('close', resolve);
    socket.once(server.secure ? 'secureConnect' : 'connect', () => {
      socket.write(bytes);
      setTimeout(() => (server.secure ? socket.destroy() : socket.resetAndDestroy()), wait);
    });
    socket.resume();
  });
}

/** Clients that are killed: within a head, within a body, before the answer, within a frame, with open subscriptions. */
export async function killedClients(server, chain, statistics, running) {
  const head = (key, length) => `POST /${key} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  const logs = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params: [{ fromBlock: '0x0', address: chain.token }] });
  const batch = `[${Array.from({ length: 50 }, () => logs)}]`;
  const upgrade = (key) =>
    `GET /websocket/${key} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
  // A masked text frame that announces 100 bytes, and has 10 of them.
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | 100, 0, 0, 0, 0]), Buffer.from('{"jsonrpc"')]);
  const kinds = [
    (key) => kill(server, head(key, 100).slice(0, 60), 5),
    (key) => kill(server, head(key, logs.length) + logs.slice(0, 20), 5),
    (key) => kill(server, head(key, batch.length) + batch, 1),
    (key) => kill(server, Buffer.concat([Buffer.from(upgrade(key)), frame]), 20),
    async (key) => {
      const socket = server.socket(key);
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('open', resolve));
      for (const kind of ['newHeads', 'logs']) socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: [kind] }));
      socket.send(batch);
      await sleep(2);
      socket.terminate();
    },
  ];
  for (let round = 0; running(); round++) {
    await kinds[round % kinds.length](server.key());
    statistics.event('clients killed');
    await sleep(KILLED);
  }
}

/** Keys that are made, used over HTTP and WebSocket, and revoked meanwhile. */
export async function revokedKeys(server, chain, statistics, running) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] });
  const post = server.client();
  const ask = async (key) => {
    const started = performance.now();
    const { status, text } = await post(key, body);
    statistics.answer(status, JSON.parse(text), performance.now() - started, 'with a key of its own');
    return status;
  };
  for (let round = 0; running(); round++) {
    const key = await server.keys('create', ...(round % 2 ? ['--rps', '5', '--burst', '10'] : []));
    const id = key.split('.')[0];
    const socket = server.socket(key);
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    for (const limit = Date.now() + USED; Date.now() < limit; await sleep(20)) {
      const status = await ask(key);
      if (status !== 200 && !(status === 429 && round % 2)) statistics.fault(`a valid key got ${status}`);
    }
    if (round % 3 === 0) await server.keys('limit', id, '--methods', 'eth_*');
    await server.keys('revoke', id);
    if ((await ask(key)) !== 401) statistics.fault('a revoked key was served');
    const code = await Promise.race([closed, sleep(CLOSED)]);
    if (code !== 1008) statistics.fault(`the WebSocket of a revoked key: ${code}`);
    socket.terminate();
    statistics.event('keys revoked');
  }
}
