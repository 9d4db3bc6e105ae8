// Vite's development server with the lines of the package's README, in a foreign project: from a packed tarball, and from a linked folder.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startBrowser } from '../../pkg/test/lib/browser.mjs';
import { packed } from '../../pkg/test/lib/packed.mjs';
import { call, startChain } from './chain.mjs';
import { blocks } from './documents/blocks.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT = { timeout: 240_000 };
const VITE = 'vite@8.3.8';

let folder, chain, browser;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-vite-'));
  // README: npm install ../rootlight/pkg
  symlinkSync(ROOT, join(folder, 'rootlight'));
  chain = await startChain();
  await call(chain.url, 'evm_mine');
  browser = await startBrowser();
}, LIMIT);
after(async () => {
  await browser?.close();
  await chain?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const readme = blocks(readFileSync(join(ROOT, 'pkg/README.md'), 'utf8'));
const [, first] = readme.filter(({ kind }) => kind === 'js');
const config = readme.find(({ text }) => text.startsWith('// vite.config.js'));

/** A project whose page shows the number of a block, or the error. */
function project(name, rootlight, files) {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  const shown = first.text.replace("network: 'mainnet'", "network: 'regtest'").replace('https://node.example/KEY', chain.url).replace('console.log(', '(globalThis.shown = ');
  const [imports, rest] = [shown.match(/^import.*$/gm).join('\n'), shown.replaceAll(/^import.*$/gm, '')];
  const main = `${imports}\nglobalThis.notes = [];\nconsole.info = (text) => globalThis.notes.push(text);\ntry {\n${rest}\n} catch (error) {\n  globalThis.failed = { code: error.code, message: error.message };\n}`;
  const all = {
    'package.json': JSON.stringify({ name, private: true, type: 'module' }),
    'index.html': '<!doctype html><meta charset="utf-8"><title>dev</title><script type="module" src="/main.js"></script>',
    'main.js': main,
    ...files,
  };
  for (const [file, text] of Object.entries(all)) writeFileSync(join(cwd, file), text);
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', rootlight, 'viem@2.57.0', VITE];
  const { status, stderr } = spawnSync('npm', install, { cwd, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return cwd;
}

/** Starts Vite's development server; resolves to its address. */
function serve(cwd) {
  const child = spawn('npx', ['vite', '--host', '127.0.0.1'], { cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  return new Promise((resolve, reject) => {
    let text = '';
    for (const output of [child.stdout, child.stderr]) {
      output.on('data', (data) => {
        // eslint-disable-next-line no-control-regex
        text = (text + data).replaceAll(/\x1b\[\d+m/g, '');
        const [, url] = /Local:\s+(http:\S+)/.exec(text) ?? [];
        if (url) resolve({ url, stop: () => (process.kill(-child.pid), ended) });
      });
    }
    ended.then((code) => reject(new Error(`vite ended with ${code}: ${text}`)));
  });
}

async function shownBy(cwd) {
  const server = await serve(cwd);
  try {
    await browser.open(server.url);
    return await browser.run(async () => {
      for (let left = 600; left > 0 && globalThis.shown === undefined && !globalThis.failed; left -= 1) await new Promise((resolve) => setTimeout(resolve, 50));
      const { shown, failed, notes } = globalThis;
      return { shown: shown === undefined ? undefined : String(shown), failed, notes };
    });
  } finally {
    await server.stop();
  }
}

const PROVEN = { shown: '1', notes: [] };

test('from a linked folder, with the plugin', LIMIT, async () => {
  assert.deepEqual(await shownBy(project('linked', '../rootlight/pkg', { 'vite.config.js': config.text })), PROVEN);
});

test('from a packed tarball, with the plugin', LIMIT, async () => {
  assert.deepEqual(await shownBy(project('tarball', packed(folder).tarball, { 'vite.config.js': config.text })), PROVEN);
});

test('a linked folder without the plugin fails with what to do', LIMIT, async () => {
  const { failed } = await shownBy(project('plain', '../rootlight/pkg', { 'vite.config.js': "export default { optimizeDeps: { exclude: ['rootlight'] } };" }));
  assert.equal(failed.code, 4900);
  assert.match(failed.message, /HTTP status 403.*rootlight\/vite\.js/);
});
