// What the tests of projects with the package's tarball have in common: copies of projects, and their pages in a browser.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startBrowser } from '../../pkg/test/lib/browser.mjs';
import { packed as pack } from '../../pkg/test/lib/packed.mjs';
import { listen } from '../../pkg/test/lib/upstream.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The folder of the copies. */
export const WORK = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'examples-npm');

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm', '.svg': 'image/svg+xml', '.css': 'text/css' };

/** The policy of a careful site; rLogin needs styles in its elements. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' http://127.0.0.1:*; style-src 'self' 'unsafe-inline'";

/** Runs a program in a folder; returns what it prints. */
export function run(cwd, program, ...args) {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', DENO_NO_UPDATE_CHECK: '1' };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: 240_000 });
  assert.equal(status, 0, `${program} ${args.join(' ')} in ${cwd}: ${stdout}${stderr}`);
  return stdout;
}

/** Packs the package as it is published. */
export function packed() {
  rmSync(WORK, { recursive: true, force: true });
  mkdirSync(WORK, { recursive: true });
  return pack(WORK).tarball;
}

/** Installs packages in a folder, without their scripts. */
export const install = (folder, ...what) => run(folder, 'npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...what);

/** A copy of a project with its packages. */
export function project(name, tarball) {
  const folder = join(WORK, name);
  cpSync(join(ROOT, 'examples', name), folder, { recursive: true });
  install(folder, tarball);
  return folder;
}

/** Asks a node. */
export async function ask(url, method, ...params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  // Connections that the node has closed during a build, which blocks this process, are noticed first.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { result, error } = await response.json();
  assert.equal(error, undefined, `${method}: ${error?.message}`);
  return result;
}

/** A wallet with one account, as an extension puts it into the page before the page's own scripts. */
const wallet = (account) => `let allowed = [];
globalThis.ethereum = {
  async request({ method }) {
    if (method === 'eth_chainId') return '0x21';
    if (method === 'eth_requestAccounts') allowed = [${JSON.stringify(account)}];
    if (method === 'wallet_requestPermissions') throw Object.assign(new Error('no such method'), { code: -32601 });
    return allowed;
  },
};`;

/** Serves a folder as a web site, whose page has a wallet. */
async function site(folder, account) {
  const read = (path) => {
    if (path === '/wallet.js') return wallet(account);
    if (path !== '/') return readFileSync(join(folder, path));
    return readFileSync(join(folder, 'index.html'), 'utf8').replace('<meta', '<script src="/wallet.js"></script><meta');
  };
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, 'http://localhost').pathname);
    try {
      const bytes = read(path);
      response.setHeader('content-type', TYPES[extname(path) || '.html'] ?? 'application/octet-stream');
      response.setHeader('content-security-policy', POLICY);
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  return listen(server);
}

/** Opens the build of a project in a browser and runs some work in the page, whose wallet has this account. */
export async function inBuild(folder, query, work, account, ...more) {
  run(folder, 'npm', 'run', 'build');
  return inFolder(join(folder, 'dist'), query, work, account, ...more);
}

/** Serves a folder as a web site and runs some work in its page, whose wallet has this account. */
export async function inFolder(folder, query, work, account, ...more) {
  const served = await site(folder, account);
  try {
    return await inPage(`${served.url}/${query}`, work, account, ...more);
  } finally {
    await served.close();
  }
}

/** Runs some work in a page. */
export async function inPage(url, work, ...args) {
  const browser = await startBrowser();
  try {
    await browser.open(url);
    return await browser.run(work, ...args);
  } finally {
    await browser.close();
  }
}
