// Runs the projects in examples/ as their users do: each is copied, gets the package's tarball and the registry's packages, and
// reads a proven balance from a development chain. Other bundlers and runtimes get small projects of their own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUNDLERS, inBundle, runtimes } from './bundlers.mjs';
import { startChain } from './chain.mjs';
import { ROOT, WORK, ask, inBuild, inFolder, inPage, install, packed, project, run } from './projects.mjs';

/** Blocks on the chain. */
const BLOCKS = 20;

/** The port of Next.js's server. */
const NEXT_PORT = 14_481;

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

/** In the page of examples/rainbowkit and examples/rlogin: clicks on each of these in turn and returns the balance that the page shows. */
const clicked = async (account, selectors) => {
  const until = async (find, what) => {
    for (let left = 400; left > 0; left -= 1) {
      const found = find();
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`no ${what}: the page shows ${document.body.textContent.slice(0, 300)}`);
  };
  for (const [selector, text] of selectors) {
    const fits = (element) => !element.disabled && element.textContent.includes(text);
    (await until(() => [...document.querySelectorAll(selector)].find(fits), selector)).click();
  }
  return until(() => document.getElementById('balance')?.textContent, 'balance');
};

/** Where a user clicks to connect. */
const CLICKS = {
  rainbowkit: [['[data-testid="rk-connect-button"]', ''], ['[data-testid="rk-wallet-option-org.example.rootlight"]', '']],
  rlogin: [['#connect', ''], ['.rlogin-header3', 'Rootlight'], ['button', 'Confirm']],
};

/** Builds and starts a project of Next.js; returns what its server renders and what the browser makes of it. */
async function inNext(folder, query) {
  run(folder, 'npm', 'run', 'build');
  const url = `http://127.0.0.1:${NEXT_PORT}/${query}`;
  const server = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start', '-p', `${NEXT_PORT}`, '-H', '127.0.0.1'], { cwd: folder, stdio: 'ignore' });
  try {
    const page = async () => (await fetch(url)).text();
    let html;
    for (let left = 200; left > 0 && !html; left -= 1) {
      html = await page().catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
    }
    const [, rendered] = /<p id="balance">([^<]*)</.exec(html);
    return [rendered, await inPage(url, shownBalance)];
  } finally {
    server.kill();
  }
}

const shownBalance = async () => {
  const text = () => document.getElementById('balance').textContent;
  for (let left = 400; left > 0 && !/wei/.test(text()); left -= 1) await new Promise((resolve) => setTimeout(resolve, 50));
  return text();
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
  const [, shown] = /```js\n([\s\S]*?)```/.exec(readme.slice(readme.indexOf('With viem')));
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

const tarball = packed();
const chain = await startChain('--genesis', 'regtest');
try {
  await ask(chain.url, 'evm_mine', { blocks: BLOCKS });
  const [account] = await ask(chain.url, 'eth_accounts');
  const balance = BigInt(await ask(chain.url, 'eth_getBalance', account, 'latest'));
  const rbtc = `${balance / 10n ** 18n}`;
  assert.ok(balance > 0n && balance % 10n ** 18n === 0n, String(balance));

  const shows = (name, output) => {
    assert.match(output, new RegExp(`^${rbtc}(\\.0)? RBTC in block ${BLOCKS}$`, 'm'), name);
    assert.match(output, /verified.*, 0 blocks on top/, name);
    console.log(`${name}: ${output.trim().split('\n').join('; ')}`);
  };
  for (const name of ['viem', 'ethers', 'web3']) {
    shows(name, run(project(name, tarball), process.execPath, 'index.mjs', account, chain.url, 'regtest'));
  }
  for (const [name, command] of Object.entries(runtimes())) {
    for (const example of ['viem', 'ethers']) {
      const [program, ...flags] = command;
      shows(`${example} in ${name}`, run(join(WORK, example), program, ...flags, 'index.mjs', account, chain.url, 'regtest'));
    }
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

  for (const [name, unit] of [['rainbowkit', `${shownRbtc(left)} RBTC`], ['rlogin', `${left} wei`]]) {
    assert.equal(await inBuild(project(name, tarball), query, clicked, account, CLICKS[name]), unit, name);
    console.log(`${name}: ${unit}`);
  }
  const next = await inNext(project('next', tarball), `${query}&address=${account}`);
  assert.deepEqual(next, ['Verifying the chain…', `${left} wei`]);
  console.log(`Next.js: the server shows "${next[0]}", the browser ${next[1]}`);

  for (const [name, make] of Object.entries(BUNDLERS)) {
    const shown = await inFolder(make(join(WORK, name), tarball), query, inBundle, account);
    assert.deepEqual(shown, { balance: String(left), notes: [] }, name);
    console.log(`${name}: ${shown.balance} wei, in a worker`);
  }

  const readme = await inBuild(fromReadme(tarball, chain.url), '', inReadme, account);
  assert.deepEqual(readme, [String(BLOCKS + 1), String(left)]);
  console.log(`the README in a project of Vite: block ${readme[0]}, balance ${readme[1]}`);
} finally {
  await chain.stop();
}
