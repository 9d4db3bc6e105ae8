// A development chain that needs an API key in the path, and what tests of the client libraries ask of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { startChain } from './chain.mjs';

/**
 * Makes a database with one key, starts a chain with it, and reports reverts with geth's code, which libraries decode.
 * `http` and `ws` are the URLs with that key; `create` makes another key.
 */
export async function startKeyed(...flags) {
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-keys-'));
  const file = join(folder, 'keys.redb');
  const keys = (...args) =>
    execFileSync(process.env.ROOTLIGHT, ['keys', ...args, '--api-keys', file], { encoding: 'utf8' }).trim();
  const first = keys('create', '--name', 'tests');
  const chain = await startChain('--revert-code', '3', '--api-keys', file, ...flags);
  const urls = (key) => ({ key, http: `${chain.url}/${key}`, ws: `${chain.url.replace('http', 'ws')}/websocket/${key}` });
  return {
    ...urls(first),
    create: (...limits) => urls(keys('create', ...limits)),
    revoke: ({ key }) => keys('revoke', key.split('.')[0]),
    wrong: urls(`${first.slice(0, -1)}${first.endsWith('A') ? 'B' : 'A'}`),
    async stop() {
      await chain.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Sends one call with `fetch`; returns the HTTP status and the JSON. */
export async function post(url, method, ...params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return { status: response.status, body: await response.json() };
}

/** The HTTP status of a WebSocket handshake that is refused. */
export function refusedHandshake(url) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.once('unexpected-response', (_, response) => {
      response.resume();
      resolve(response.statusCode);
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

/** Waits until `ready` holds; fails after ten seconds. */
export async function until(ready, what) {
  for (const limit = Date.now() + 10_000; !(await ready()); ) {
    assert.ok(Date.now() < limit, `timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
