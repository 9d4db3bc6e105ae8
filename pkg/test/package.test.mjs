// What is published: the list of files, what the manifest exports, and what tools for packages say about it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { packed } from './lib/packed.mjs';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(`${FOLDER}package.json`, 'utf8'));

function run(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: FOLDER, encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}`, stdout };
}

let folder;
/** The tarball and the names of its files. */
let tarball;
let names;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-packed-'));
  ({ tarball, names } = packed(folder));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program of the development dependencies. */
const tool = (file, args) => run(process.execPath, [`node_modules/${file}`, ...args]);

const CODE = [
  'announce', 'chains', 'connect', 'dev-module', 'dev-worker', 'dev', 'directory', 'events', 'exchange', 'first-block', 'forked', 'functions', 'host', 'index', 'instance', 'life', 'light-module',
  'load', 'locks', 'message', 'meter', 'placement', 'ports', 'provider', 'remote', 'renewal', 'secrets', 'state-proofs', 'store', 'transport', 'upstream-words', 'verification',
  'verify', 'vite', 'wallet', 'websocket', 'window-pages', 'worker',
].map((name) => `${name}.js`);
const PROGRAM = ['access', 'commands', 'dev', 'flags', 'http', 'light', 'mnemonic', 'rootlight', 'server', 'sockets', 'verify'].map((name) => `bin/${name}.js`);
const TYPES = ['dev', 'dev-worker', 'index', 'verify', 'vite', 'worker'].map((name) => `${name}.d.ts`);
const MODULES = ['', '_dev', '_verify'].flatMap((name) => [`dist/rootlight${name}.js`, `dist/rootlight${name}_bg.wasm`]);
const DOCUMENTS = ['CHANGELOG.md', 'LICENSE-APACHE', 'LICENSE-MIT'];

test('the published files are these, and no others', () => {
  assert.deepEqual(names, ['README.md', 'package.json', 'dist/SHA256SUMS', ...DOCUMENTS, ...CODE, ...PROGRAM, ...TYPES, ...MODULES].sort());
});

/** The unpacked package. */
function unpacked() {
  assert.equal(run('tar', ['-xzf', tarball, '-C', folder]).status, 0);
  return join(folder, 'package');
}

test('the package has the project\'s licences and changelog', () => {
  const published = unpacked();
  for (const name of DOCUMENTS) assert.deepEqual(readFileSync(join(published, name)), readFileSync(`${FOLDER}../${name}`), name);
});

test('the modules of a package are checked against its checksums and against a build', () => {
  const check = (...args) => run(process.execPath, ['scripts/check.mjs', ...args]);
  assert.deepEqual(check(tarball).status, 0, check(tarball).output);
  const published = unpacked();
  const dist = join(published, 'dist');
  assert.match(check(published).output, /the modules are those of/);
  const module = join(dist, 'rootlight_bg.wasm');
  const bytes = readFileSync(module);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(module, bytes);
  const refused = (reason) => {
    const { status, output } = check(published);
    assert.equal(status, 1);
    assert.match(output, reason);
  };
  refused(/not as SHA256SUMS states: rootlight_bg\.wasm/);
  // Whoever changes a module may change the list too.
  const changed = createHash('sha256').update(bytes).digest('hex');
  const list = readFileSync(join(dist, 'SHA256SUMS'), 'utf8');
  writeFileSync(join(dist, 'SHA256SUMS'), list.replace(/\w+(?=  rootlight_bg\.wasm)/, changed));
  refused(/not as in .*dist: rootlight_bg\.wasm/);
  copyFileSync(`${FOLDER}dist/rootlight_bg.wasm`, module);
  writeFileSync(join(dist, 'SHA256SUMS'), list);
  assert.equal(check(published).status, 0);
  writeFileSync(join(dist, 'more.js'), '');
  refused(/not part of the package: more\.js/);
  rmSync(join(dist, 'more.js'));
  writeFileSync(join(dist, 'SHA256SUMS'), list.split('\n').slice(1).join('\n'));
  refused(/not as SHA256SUMS states: rootlight\.js/);
});

test('every export exists and can be imported by its name', async () => {
  for (const target of Object.values(manifest.exports).flatMap((entry) => (typeof entry === 'string' ? [entry] : Object.values(entry)))) {
    assert.ok(existsSync(`${FOLDER}${target}`), target);
  }
  // A package may import itself by its name.
  const own = await import('rootlight');
  assert.equal(own.createProvider, (await import('../index.js')).createProvider);
  assert.equal(typeof (await import('rootlight/dev.js')).createDevChain, 'function');
  assert.equal(typeof (await import('rootlight/verify.js')).verifyAccount, 'function');
  assert.match(import.meta.resolve('rootlight/worker.js'), /\/worker\.js$/);
  for (const name of ['', '_dev', '_verify']) assert.match(import.meta.resolve(`rootlight/dist/rootlight${name}_bg.wasm`), /\.wasm$/);
});

test('only the workers\' files do anything when they are imported', () => {
  assert.deepEqual(manifest.sideEffects, ['./worker.js', './dev-worker.js']);
  // Pages load no other package: bin.test.mjs shows that only the program reaches it.
  assert.deepEqual(Object.keys(manifest.dependencies), ['ws']);
});

test('publint finds nothing', () => {
  const { status, output } = tool('publint/src/cli.js', ['run', tarball, '--strict']);
  assert.equal(status, 0, output);
});

test('the types resolve as arethetypeswrong expects of a package of ES modules', () => {
  // WebAssembly files have no types.
  const modules = Object.keys(manifest.exports).filter((name) => name.endsWith('.wasm')).map((name) => name.slice(2));
  const { status, output } = tool('@arethetypeswrong/cli/dist/index.js', [tarball, '--profile', 'esm-only', '--exclude-entrypoints', ...modules]);
  assert.equal(status, 0, output);
});
