// The package beside other light clients in WebAssembly: bytes that a page loads, compressed by brotli, and the time to compile and
// instantiate the module, in Node.js and in headless Chromium. Each module gets functions that do nothing for its imports.
//
//   [CHROMIUM=..] node modules.mjs
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, inflateSync } from 'node:zlib';
import { startBrowser } from '../../pkg/test/lib/browser.mjs';
import { listen } from '../../pkg/test/lib/upstream.mjs';

/** Rounds; the first one is a warm-up and does not count. */
const ROUNDS = 16;

const folder = fileURLToPath(new URL('modules', import.meta.url));
const installed = (path) => join(folder, 'node_modules', path);
const ours = (name) => fileURLToPath(new URL(`../../pkg/dist/${name}_bg.wasm`, import.meta.url));
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** The module inside smoldot's scripts: base64 of deflated bytes. */
async function smoldots() {
  const { default: text } = await import(installed('smoldot/dist/mjs/internals/bytecode/wasm.js'));
  return inflateSync(Buffer.from(text, 'base64'));
}

const MODULES = {
  'Rootlight, light client': readFileSync(ours('rootlight')),
  'Rootlight, with a development chain': readFileSync(ours('rootlight_dev')),
  Helios: readFileSync(installed('@a16z/helios/pkg/index_bg.wasm')),
  smoldot: await smoldots(),
  Colibri: readFileSync(installed('@corpus-core/colibri-stateless/c4w.wasm')),
};

/** What a page bundles, and the files beside the bundle. */
const BUNDLES = {
  'Rootlight, light client': ["export { createProvider } from 'PKG/index.js';", [ours('rootlight')]],
  'Rootlight, with a development chain': ["export { createDevChain } from 'PKG/dev.js';", [ours('rootlight_dev')]],
  Helios: ["export { createHeliosProvider } from '@a16z/helios';", []],
  smoldot: ["export { start } from 'smoldot';", []],
  Colibri: ["export { default } from '@corpus-core/colibri-stateless';", [installed('@corpus-core/colibri-stateless/c4w.wasm')]],
  '@ethereumjs/evm (no proofs, no network)': ["export { createEVM } from '@ethereumjs/evm';", []],
};

const brotli = (bytes) => brotliCompressSync(bytes).length;

/** Bytes of a minified bundle and the files beside it, each compressed. */
function bundled([source, files]) {
  const out = mkdtempSync(join(tmpdir(), 'rootlight-bundle-'));
  try {
    const text = source.replace('PKG', fileURLToPath(new URL('../../pkg', import.meta.url)));
    const flags = ['--bundle', '--minify', '--format=esm', '--platform=browser', '--log-level=error', `--outfile=${out}/bundle.js`];
    const esbuild = createRequire(join(folder, 'package.json')).resolve('esbuild/bin/esbuild');
    execFileSync(process.execPath, [esbuild, ...flags, '--external:node:*'], { input: text, cwd: folder, stdio: ['pipe', 'ignore', 'inherit'] });
    const scripts = readdirSync(out).map((name) => join(out, name));
    return [...scripts, ...files].reduce((sum, file) => sum + brotli(readFileSync(file)), 0);
  } finally {
    rmSync(out, { recursive: true });
  }
}

/**
 * Runs in Node.js and in a page: the milliseconds to compile and instantiate a module. A section with random bytes is appended, because
 * engines keep the code of a module that they have seen.
 */
async function instantiate(bytes) {
  const fresh = new Uint8Array(bytes.length + 12);
  fresh.set(bytes);
  // A custom section of ten bytes, whose name has one.
  fresh.set([0, 10, 1, 120], bytes.length);
  crypto.getRandomValues(fresh.subarray(bytes.length + 4));
  const began = performance.now();
  const module = await WebAssembly.compile(fresh);
  const compiled = performance.now();
  const imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    if (kind === 'function') imports[from][name] = () => 0;
    else if (kind === 'memory') imports[from][name] = new WebAssembly.Memory({ initial: 1024, maximum: 65536 });
    else throw new Error(`imports a ${kind}`);
  }
  const ready = performance.now();
  await WebAssembly.instantiate(module, imports);
  return compiled - began + (performance.now() - ready);
}

/** Measures all modules in turn: `one` gives the milliseconds of the module of this name. */
async function rounds(place, one) {
  const times = Object.fromEntries(Object.keys(MODULES).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of Object.keys(MODULES)) {
      const time = await one(name);
      if (round > 0) times[name].push(time);
    }
  }
  for (const [name, mine] of Object.entries(times)) {
    const ratio = median(mine.map((time, round) => time / times.Helios[round]));
    console.log(`${place}, ${name}: ${median(mine).toFixed(1)} ms, ${ratio.toFixed(2)} of Helios's`);
  }
}

/** Serves an empty page, and the modules under their names. */
async function site() {
  const server = createServer((request, response) => {
    const name = decodeURIComponent(request.url.slice(1));
    response.setHeader('content-type', name in MODULES ? 'application/octet-stream' : 'text/html');
    response.end(MODULES[name] ?? '<!doctype html><title>modules</title>');
  });
  return listen(server);
}

for (const [name, bytes] of Object.entries(MODULES)) console.log(`module, ${name}: ${bytes.length} bytes, ${brotli(bytes)} by brotli`);
for (const [name, bundle] of Object.entries(BUNDLES)) console.log(`all that a page loads, ${name}: ${bundled(bundle)} bytes by brotli`);
await rounds('Node.js', (name) => instantiate(MODULES[name]));
const served = await site();
const browser = await startBrowser();
try {
  await browser.open(`${served.url}/`);
  await browser.run(
    async (names, source) => {
      globalThis.modules = {};
      for (const name of names) {
        globalThis.modules[name] = new Uint8Array(await (await fetch(`/${encodeURIComponent(name)}`)).arrayBuffer());
      }
      globalThis.instantiate = new Function(`return ${source}`)();
    },
    Object.keys(MODULES),
    instantiate.toString(),
  );
  await rounds('Chromium', (name) => browser.run(async (of) => globalThis.instantiate(globalThis.modules[of]), name));
} finally {
  await browser.close();
  await served.close();
}
