// A development chain that needs an API key in the path, and what tests of the client libraries ask of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { keys as keysOfService, post, service, startChain, until } from './chain.mjs';

export { post, until };

/**
 * Makes a database with one key, starts a chain with it, and reports reverts with geth's code, which libraries decode.
 * `http` and `ws` are the URLs with that key; `create` makes another key. In a service the keys are those of all front ends.
 */
export async function startKeyed() {
  if (service) return keyed(service.keyed.url, keysOfService, service.keyed.frontEnds);
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-keys-'));
  const file = join(folder, 'keys.redb');
  const keys = (...args) =>
    execFileSync(process.env.ROOTLIGHT, ['keys', ...args, '--api-keys', file], { encoding: 'utf8' }).trim();
  // The database exists before the chain starts.
  const first = keys('create', '--name', 'tests');
  const chain = await startChain('--revert-code', '3', '--api-keys', file);
  const stop = async () => {
    await chain.stop();
    rmSync(folder, { recursive: true });
  };
  return { ...keyed(chain.url, keys, [], first), stop };
}

function keyed(url, keys, frontEnds, first = keys('create', '--name', 'tests')) {
  const urls = (key) => ({ key, http: `${url}/${key}`, ws: `${url.replace('http', 'ws')}/websocket/${key}` });
  return {
    ...urls(first),
    create: (...limits) => urls(keys('create', ...limits)),
    /** Resolves when the key is refused: several front ends learn of it within a second. */
    async revoke({ key }) {
      keys('revoke', key.split('.')[0]);
      for (const frontEnd of frontEnds) {
        await until(async () => (await post(`${frontEnd}/${key}`, 'eth_chainId')).status === 401, 'the revocation');
      }
    },
    wrong: urls(`${first.slice(0, -1)}${first.endsWith('A') ? 'B' : 'A'}`),
    stop: async () => {},
  };
}

/** The HTTP status of a WebSocket handshake that is refused. */
export function refusedHandshake(url) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.once('unexpected-response', (request, response) => {
      resolve(response.statusCode);
      // A balancer leaves the connection open.
      request.destroy();
    });
    socket.once('open', () => reject(new Error('the WebSocket was accepted')));
    socket.once('error', reject);
  });
}

/** Checks what a wrong key gets: 401 with a JSON-RPC error over HTTP, and 401 before a WebSocket is opened. */
export async function assertRefused({ http, ws }) {
  const { status, body } = await post(http, 'eth_chainId');
  assert.equal(status, 401);
  assert.deepEqual(body, { jsonrpc: '2.0', id: 1, error: { code: -32016, message: 'Unauthorized: invalid API key' } });
  assert.equal(await refusedHandshake(ws), 401);
}
