// Makes the JavaScript side of a module, which wasm-bindgen writes for one instance for ever, a function that makes as
// many as are wanted: `node factory.mjs FILE`. Each client has an instance of its own: its memory goes when it is closed,
// and what ends one instance leaves the others alone.
//
// The function takes `guard`, which is given the instance's exports and returns what is called in their place, and
// `rootlightSleep`, which the module imports. It returns the classes and functions that wasm-bindgen exports, and `init`.
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.argv[2];
let text = readFileSync(file, 'utf8');

/** Replaces what must be there exactly once: the command line tool's version is pinned, so this fails on an upgrade only. */
function replace(what, by) {
  if (text.split(what).length !== 2) throw new Error(`${file}: '${what}' is not there once; has wasm-bindgen changed?`);
  text = text.replace(what, () => by);
}

const names = Array.from(text.matchAll(/^export (?:class|function) (\w+)/gm), ([, name]) => name);
text = text.replaceAll(/^export (?=class |function )/gm, '');
replace('wasm = instance.exports;', 'wasm = guard(instance.exports);');
replace('export { initSync, __wbg_init as default };', `return { ${names.join(', ')}, init: __wbg_init };`);
if (/^(export|import)\b/m.test(text)) throw new Error(`${file}: an import or export that is not known`);
writeFileSync(file, `export function instantiate({ guard, rootlightSleep }) {\n${text}}\n`);
