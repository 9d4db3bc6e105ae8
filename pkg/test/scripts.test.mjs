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

/**
 * A module with two functions, each with a text of its own: `works` reads the text, `panics` needs it for its message only. `quotes` writes a
 * number by a function with the name of that of serde_json, and returns the length of the text and its first byte. `power` reads a table with
 * the name of serde_json's powers of ten, and `fails` quotes an error by a function that only the table of functions refers to then.
 */
const SOURCE = `
#[no_mangle] pub extern "C" fn works(at: usize) -> u8 { b"this text is read"[at % 17] }
#[no_mangle] pub extern "C" fn panics(at: usize) { assert!(at < 3, "only a panic shows this text") }
#[no_mangle] pub extern "C" fn indexes(at: usize) -> u8 { [4, 2, 9, 7, 1][at] }
pub mod of_f64 {
    #[inline(never)]
    pub unsafe fn write_to_zmij_buffer(value: f64, to: *mut u8) -> *mut u8 { *to = value as u8; to.add(value as usize) }
}
#[no_mangle] pub extern "C" fn quotes(value: f64) -> usize {
    let mut text = [0u8; 64];
    let start = text.as_mut_ptr();
    let end = unsafe { of_f64::write_to_zmij_buffer(value, start) };
    (end as usize - start as usize) * 256 + text[0] as usize
}
pub mod serde_json { pub mod de { pub static POW10: [f64; 4] = [1.0, 10.0, 100.0, 1000.0]; } }
#[no_mangle] pub extern "C" fn power(at: usize) -> f64 { serde_json::de::POW10[at % 4] }
struct Fault;
impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { if f.width() == Some(0x2345) { Ok(()) } else { f.write_str("fault") } }
}
#[no_mangle] pub extern "C" fn fails(at: usize) -> usize { if at < 3 { Ok(at) } else { Err(Fault) }.unwrap() }
`;

/** The instruction that pushes the number with which `Fault` compares. */
const WIDTH = Uint8Array.of(0x41, 0xc5, 0xc6, 0x00);

/** Compiles {@link SOURCE}. */
function compiled(...options) {
  const source = join(folder, 'source.rs');
  writeFileSync(source, SOURCE);
  const common = ['--edition=2021', '--crate-type=cdylib', '--target=wasm32-unknown-unknown', '-Copt-level=z', '-Cpanic=abort', '-Clto=fat', '-Ccodegen-units=1'];
  const { status, stderr } = spawnSync('rustc', [...common, ...options, '-o', file, source], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return readFileSync(file);
}

test('the size of a module is printed if the engine accepts it', () => {
  assert.match(run('weigh.mjs', EMPTY).stdout, /^8 \d+ 93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476\n$/);
  const { status, stderr, stdout } = run('weigh.mjs', EMPTY.slice(1));
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /the engine rejects this module/);
});

test('functions that panic become traps, and what only they use becomes zeros', async () => {
  const linked = compiled('-Clink-arg=--emit-relocs');
  const holds = (bytes, text) => Buffer.from(bytes).includes(text);
  assert.ok(['this text is read', 'only a panic shows this text', 'reloc.CODE'].every((text) => holds(linked, text)));
  assert.match(run('trap.mjs', linked).stdout, /^\d+ of \d+ bytes of constants are unused\n$/);
  const made = readFileSync(file);
  assert.deepEqual(['this text is read', 'only a panic shows this text', 'reloc.', 'linking'].map((text) => holds(made, text)), [true, false, false, false]);
  const { instance: { exports } } = await WebAssembly.instantiate(made);
  assert.equal(String.fromCharCode(...Array.from({ length: 17 }, (_, at) => exports.works(at))), 'this text is read');
  assert.deepEqual([0, 1, 2, 3, 4].map(exports.indexes), [4, 2, 9, 7, 1]);
  assert.equal(exports.panics(2), undefined);
  assert.equal(exports.quotes(7.5), 256 + '?'.charCodeAt());
  assert.deepEqual([0, 1, 2, 3].map(exports.power), [1, 1, 1, 1]);
  assert.deepEqual([linked, made].map((bytes) => holds(bytes, WIDTH)), [true, false]);
  assert.equal(exports.fails(2), 2);
  for (const trap of [() => exports.panics(3), () => exports.indexes(5), () => exports.fails(3)]) assert.throws(trap, /^RuntimeError: unreachable/);
});

test('functions get names that put them in an order, and the module stays as it is', async () => {
  const linked = compiled();
  const { status, stderr } = run('order.mjs', linked);
  assert.deepEqual([status, stderr], [0, '']);
  const made = readFileSync(file);
  const parts = async (bytes) => {
    const module = await WebAssembly.compile(bytes);
    const { exports } = new WebAssembly.Instance(module);
    return [WebAssembly.Module.exports(module), exports.quotes(7.5), exports.indexes(3), WebAssembly.Module.customSections(module, 'name').length];
  };
  assert.deepEqual(await parts(made), await parts(linked));
  const [names] = WebAssembly.Module.customSections(await WebAssembly.compile(made), 'name');
  const found = Buffer.from(names).toString('latin1').match(/\d{8}/g);
  assert.deepEqual([...found].sort(), found.map((_, place) => String(place).padStart(8, '0')));
  // The same bytes again: the order depends on nothing else.
  run('order.mjs', made);
  assert.deepEqual(readFileSync(file), made);
});

test('a module without what the linker knows is refused', () => {
  const { status, stderr } = run('trap.mjs', compiled());
  assert.notEqual(status, 0);
  assert.match(stderr, /without --emit-relocs/);
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
