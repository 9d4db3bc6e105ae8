// Turns the JavaScript side of a module, which wasm-bindgen generates for a single instance, into a function that makes any
// number of instances: `node factory.mjs FILE`. Each client has its own instance: its memory is freed when the client is
// closed, and an error that ends one instance does not affect the others.
//
// The function takes `guard`, which gets the instance's exports and returns the functions that replace them, and
// `rootlightSleep` and `rootlightChanged`, which the module imports. It returns the classes and functions that wasm-bindgen exports, and `init`.
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.argv[2];
let text = readFileSync(file, 'utf8');

/** Replaces a text that must occur exactly once. The command line tool's version is pinned, so this can only fail after an upgrade. */
function replace(what, by) {
  if (text.split(what).length !== 2) throw new Error(`${file}: '${what}' does not occur exactly once; has wasm-bindgen changed?`);
  // A function, because `replace` would interpret `$` in a text.
  text = text.replace(what, () => by);
}

/** The classes and functions that wasm-bindgen exports. */
const names = Array.from(text.matchAll(/^export (?:class|function) (\w+)/gm), ([, name]) => name);
text = text.replaceAll(/^export (?=class |function )/gm, '');
replace('wasm = instance.exports;', 'wasm = guard(instance.exports);');
replace('export { initSync, __wbg_init as default };', `return { ${names.join(', ')}, init: __wbg_init };`);
if (/^(export|import)\b/m.test(text)) throw new Error(`${file}: an unexpected import or export`);
writeFileSync(file, `export function instantiate({ guard, rootlightSleep, rootlightChanged }) {\n${text}}\n`);
