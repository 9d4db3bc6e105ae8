// The scripts that process a built module.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const folder = mkdtempSync(join(tmpdir(), 'rootlight-scripts-'));
const file = join(folder, 'module.wasm');
after(() => rmSync(folder, { recursive: true }));

const run = (script, bytes) => {
  writeFileSync(file, bytes);
  const path = fileURLToPath(new URL(`../scripts/${script}`, import.meta.url));
  return spawnSync(process.execPath, [path, file], { encoding: 'utf8' });
};

const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

test('the size of a module is printed if the engine accepts it', () => {
  assert.match(run('weigh.mjs', EMPTY).stdout, /^8 \d+ 93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476\n$/);
  const { status, stderr, stdout } = run('weigh.mjs', EMPTY.slice(1));
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /the engine rejects this module/);
});

test('the JavaScript side of a module becomes a function that makes any number of instances', async () => {
  const glue = `
    let wasm;
    export class Client { get() { return wasm.get(); } }
    export function version() { return wasm.version(); }
    export { initSync, __wbg_init as default };
    function initSync() {}
    function __wbg_init(instance) {
        wasm = instance.exports;
    }
  `.replaceAll(/^ {4}/gm, '');
  assert.equal(run('factory.mjs', glue).stderr, '');
  const { instantiate } = await import(`data:text/javascript,${encodeURIComponent(readFileSync(file, 'utf8'))}`);
  const make = (number) => {
    const { init, ...rest } = instantiate({ guard: ({ get }) => ({ get: () => get() + 1, version: () => 'v' }) });
    init({ exports: { get: () => number } });
    return rest;
  };
  const made = [1, 5].map(make);
  assert.deepEqual(made.map(({ Client, version }) => [new Client().get(), version()]), [[2, 'v'], [6, 'v']]);
  for (const other of [glue.replace('wasm = instance.exports;', ''), glue.replace('initSync, ', ''), `import './x.js';\n${glue}`]) {
    assert.notEqual(run('factory.mjs', other).status, 0);
  }
});
