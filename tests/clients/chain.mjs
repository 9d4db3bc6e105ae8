// Starts a development chain for a test file and ends it afterwards; or, if `ROOTLIGHT_SERVICE` is set (service.mjs), finds
// the running service of several front ends, which all test files share.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { startProgram } from './program.mjs';

/** Where the service is; undefined for one process. */
export const service = process.env.ROOTLIGHT_SERVICE && JSON.parse(process.env.ROOTLIGHT_SERVICE);

/**
 * Starts `rootlight dev`; resolves once it answers.
 *
 * `url` is what clients are given. `control` is the chain itself, for what only a development chain has: test actions and
 * accounts whose keys it holds. `shown` waits until all that answer at `url` show what the chain shows. For one process the
 * two addresses are the same.
 */
export async function startChain(...flags) {
  if (service) return inService(flags);
  const { url, stop } = await startProgram(process.env.ROOTLIGHT, ['dev', '--http-port', '0', ...flags]);
  return { url, control: url, shown: async () => {}, stop };
}

/** The front ends without keys have the usual code of reverts, those with keys that of geth. */
function inService(flags) {
  const { control, open, keyed } = service;
  const wanted = flags.join(' ');
  if (!['', '--revert-code 3'].includes(wanted)) throw new Error(`no front end was started with ${wanted}`);
  const key = wanted && keys('create', '--state-override', 'on');
  const { url, frontEnds } = wanted ? keyed : open;
  const path = wanted && `/${key}`;
  // The number is enough: tests leave a branch for a longer one.
  const newest = (place) => call(place, 'eth_blockNumber');
  const shown = () => until(async () => {
    const places = [control, ...frontEnds.map((frontEnd) => `${frontEnd}${path}`)];
    return new Set(await Promise.all(places.map(newest))).size === 1;
  }, 'the front ends show the newest block');
  return { url: `${url}${path}`, control, shown, stop: async () => {} };
}

/** Runs `rootlight keys` on the keys of the service. */
export function keys(command, ...args) {
  return execFileSync(process.env.ROOTLIGHT, ['keys', command, ...args, ...service.shared], { encoding: 'utf8' }).trim();
}

/** Sends one call; returns its result. */
export async function call(url, method, ...params) {
  const { body } = await post(url, method, ...params);
  return body.result;
}

/** Sends one call with `fetch`; returns the HTTP status and the JSON. */
export async function post(url, method, ...params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return { status: response.status, body: await response.json() };
}

/** Waits until `ready` holds; fails after ten seconds, or after these milliseconds. */
export async function until(ready, what, most = 10_000) {
  for (const limit = Date.now() + most; !(await ready()); ) {
    if (Date.now() > limit) throw new Error(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * Waits for a receipt with viem, but without its search for a transaction that replaced this one: a block that comes during
 * the search is not looked at, and a chain that mines a block for each transaction has no next one.
 */
export const mined = (client, hash) => client.waitForTransactionReceipt({ hash, checkReplacement: false, timeout: 20_000 });

/** The compiled test contract. */
export const token = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));

/** The mnemonic that the chain funds when none is given. */
export const MNEMONIC = 'test test test test test test test test test test test junk';
