// Runs the projects in examples/ as their users do: each is copied, gets the package's tarball and the registry's packages, and
// reads a proven balance from a development chain.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startBrowser } from '../../pkg/test/lib/browser.mjs';
import { listen } from '../../pkg/test/lib/upstream.mjs';
import { startChain } from './chain.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const WORK = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'examples-npm');

/** Blocks on the chain. */
const BLOCKS = 20;

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm', '.svg': 'image/svg+xml' };

/** The policy of a careful site. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' http://127.0.0.1:*";

function run(cwd, program, ...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 120_000 });
  assert.equal(status, 0, `${program} ${args.join(' ')} in ${cwd}: ${stdout}${stderr}`);
  return stdout;
}

/** Packs the package as it is published. */
function packed() {
  const [{ filename }] = JSON.parse(run(join(ROOT, 'pkg'), 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', WORK));
  return join(WORK, filename);
}

const install = (folder, ...what) => run(folder, 'npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...what);

/** A copy of a project with its packages. */
function project(name, tarball) {
  const folder = join(WORK, name);
  cpSync(join(ROOT, 'examples', name), folder, { recursive: true });
  install(folder, tarball);
  return folder;
}

async function ask(url, method, ...params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
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
async function inBuild(folder, query, work, account) {
  run(folder, 'npm', 'run', 'build');
  const served = await site(join(folder, 'dist'), account);
  const browser = await startBrowser();
  try {
    await browser.open(`${served.url}/${query}`);
    return await browser.run(work, account);
  } finally {
    await browser.close();
    await served.close();
  }
}

/** In the page of examples/wagmi: connects and returns what it shows. */
const connected = async () => {
  const text = (id) => document.getElementById(id).textContent;
  const until = async (done) => {
    for (let left = 400; left > 0 && !done(); left -= 1) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  await until(() => !document.getElementById('connect').disabled);
  document.getElementById('connect').click();
  await until(() => text('balance') && text('proof'));
  return ['status', 'balance', 'proof'].map(text);
};

/** The address of every name of {@link deployRegistry}. */
const NAMED = `0x${'5a'.repeat(20)}`;

/** Deploys a registry of names that is its own resolver: `resolver(bytes32)` is its address, every other call returns {@link NAMED}. */
async function deployRegistry(url, from) {
  const answer = '60005260206000f3';
  const runtime = `60003560e01c630178b8bf14602c5773${NAMED.slice(2)}${answer}5b30${answer}`;
  const length = (runtime.length / 2).toString(16);
  const data = `0x60${length}600c60003960${length}6000f3${runtime}`;
  const hash = await ask(url, 'eth_sendTransaction', { from, data, gas: '0x30d40' });
  return (await ask(url, 'eth_getTransactionReceipt', hash)).contractAddress;
}

/** An empty project of Vite with the lines of the package's README. */
function fromReadme(tarball, url) {
  const folder = join(WORK, 'vite');
  mkdirSync(folder, { recursive: true });
  const readme = readFileSync(join(ROOT, 'pkg/README.md'), 'utf8');
  const [, shown] = /```js\n([\s\S]*?)```/.exec(readme.slice(readme.indexOf('## In 60 seconds')));
  assert.ok(shown.includes('createPublicClient'));
  // Another network and node than in the README; everything else is as it stands there.
  const replace = (text, from, to) => {
    assert.ok(text.includes(from), `the README has no ${from}`);
    return text.replace(from, to);
  };
  const ours = 'globalThis.client = client;\nglobalThis.block = String(await client.getBlockNumber());';
  const main = [
    ["network: 'mainnet'", "network: 'regtest'"],
    ['https://node.example/KEY', url],
    ["  checkpoint: 'work',", ''],
    ['console.log(await client.getBlockNumber());', ours],
  ].reduce((text, [from, to]) => replace(text, from, to), shown);
  writeFileSync(join(folder, 'main.js'), main);
  writeFileSync(join(folder, 'index.html'), '<!doctype html><meta charset="utf-8"><title>README</title><script type="module" src="/main.js"></script>');
  const manifest = { name: 'readme', private: true, type: 'module', scripts: { build: 'vite build' } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  install(folder, tarball, 'viem@2.57.20', 'vite@8.3.8');
  return folder;
}

const inReadme = async (account) => {
  for (let left = 400; left > 0 && !globalThis.block; left -= 1) await new Promise((resolve) => setTimeout(resolve, 50));
  return [globalThis.block, String(await globalThis.client.getBalance({ address: account }))];
};

/** An amount in RBTC as viem shows it. */
const shownRbtc = (wei) => `${wei / 10n ** 18n}.${String(wei % 10n ** 18n).padStart(18, '0')}`.replace(/\.?0+$/, '');

rmSync(WORK, { recursive: true, force: true });
mkdirSync(WORK, { recursive: true });
const tarball = packed();
const chain = await startChain('--genesis', 'regtest');
try {
  await ask(chain.url, 'evm_mine', { blocks: BLOCKS });
  const [account] = await ask(chain.url, 'eth_accounts');
  const balance = BigInt(await ask(chain.url, 'eth_getBalance', account, 'latest'));
  const rbtc = `${balance / 10n ** 18n}`;
  assert.ok(balance > 0n && balance % 10n ** 18n === 0n, String(balance));

  for (const name of ['viem', 'ethers']) {
    const output = run(project(name, tarball), process.execPath, 'index.mjs', account, chain.url, 'regtest');
    assert.match(output, new RegExp(`^${rbtc}(\\.0)? RBTC in block ${BLOCKS}$`, 'm'), name);
    assert.match(output, /verified.*, 0 blocks on top/, name);
    console.log(`${name}: ${output.trim().split('\n').join('; ')}`);
  }

  const registry = await deployRegistry(chain.url, account);
  const named = run(join(WORK, 'viem'), process.execPath, 'rns.mjs', 'alice.rsk', chain.url, 'regtest', registry);
  assert.match(named, new RegExp(`^alice\\.rsk is ${NAMED} in block ${BLOCKS + 1}$`, 'mi'));
  console.log(`viem: ${named.trim()}`);

  // The deployment may have cost something.
  const left = BigInt(await ask(chain.url, 'eth_getBalance', account, 'latest'));
  const query = `?node=${encodeURIComponent(chain.url)}&network=regtest`;
  const shown = await inBuild(project('wagmi', tarball), query, connected, account);
  assert.deepEqual(shown, ['Connected to Rootstock Regtest', `${shownRbtc(left)} RBTC`, 'verified, 0 blocks on top']);
  console.log(`wagmi: ${shown.join('; ')}`);

  const readme = await inBuild(fromReadme(tarball, chain.url), '', inReadme, account);
  assert.deepEqual(readme, [String(BLOCKS + 1), String(left)]);
  console.log(`the README in a project of Vite: block ${readme[0]}, balance ${readme[1]}`);
} finally {
  await chain.stop();
}
