// What is published: the list of files, what the manifest exports, and what tools for packages say about it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(`${FOLDER}package.json`, 'utf8'));

function run(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: FOLDER, encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}`, stdout };
}

/** Runs a program of the development dependencies. */
const tool = (file, args) => run(process.execPath, [`node_modules/${file}`, ...args]);

const CODE = [
  'announce', 'connect', 'dev-module', 'dev-worker', 'dev', 'directory', 'events', 'exchange', 'functions', 'host', 'index', 'instance', 'life', 'light-module',
  'load', 'locks', 'message', 'placement', 'ports', 'provider', 'remote', 'store', 'transport', 'verification', 'verify', 'wallet', 'websocket', 'worker',
].map((name) => `${name}.js`);
const TYPES = ['dev', 'dev-worker', 'index', 'verify', 'worker'].map((name) => `${name}.d.ts`);
const MODULES = ['', '_dev', '_verify'].flatMap((name) => [`dist/rootlight${name}.js`, `dist/rootlight${name}_bg.wasm`]);

test('the published files are these, and no others', () => {
  const { stdout } = run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts']);
  const [{ files }] = JSON.parse(stdout);
  const names = files.map(({ path }) => path).sort();
  assert.deepEqual(names, ['README.md', 'package.json', ...CODE, ...TYPES, ...MODULES].sort());
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
  assert.equal(manifest.dependencies, undefined);
});

test('publint finds nothing', () => {
  const { status, output } = tool('publint/src/cli.js', ['--strict']);
  assert.equal(status, 0, output);
});

test('the types resolve as arethetypeswrong expects of a package of ES modules', () => {
  // WebAssembly files have no types.
  const modules = Object.keys(manifest.exports).filter((name) => name.endsWith('.wasm')).map((name) => name.slice(2));
  const { status, output } = tool('@arethetypeswrong/cli/dist/index.js', ['--pack', '.', '--profile', 'esm-only', '--exclude-entrypoints', ...modules]);
  assert.equal(status, 0, output);
});
