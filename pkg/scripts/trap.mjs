// Makes a panic a trap at once: `node trap.mjs MODULE`. A module has nowhere to print a panic's message to
// and traps after having put it together, so all that it loses is the code that does that. Nothing shows a number with a
// fraction by the standard library either: serde's errors could, but serde_json writes such numbers itself.
import { readFileSync, writeFileSync } from 'node:fs';
import binaryen from 'binaryen';

/** Functions that never return, of the standard library: core::panicking and what leads there or goes on from there. */
const PANICS = /^core(\[\w+\])?::(panicking::|(str|slice::index)::slice_\w*fail|(option|result)::(unwrap|expect)_failed)|::panicking::panic_with_hook$/;

/** Functions that show a number with a fraction, some fifteen kilobytes with what only they call. */
const FRACTIONS = /^core(\[\w+\])?::fmt::float::float_to_decimal_common_(exact|shortest)(::<f64>)?(::h[0-9a-f]{16})?$/;

/** What rustc's wasm32 target emits, as in xtask/src/wasm.rs. */
const FEATURES = ['BulkMemory', 'Multivalue', 'MutableGlobals', 'NontrappingFPToInt', 'ReferenceTypes', 'SignExt'];

const file = process.argv[2];
const features = FEATURES.map((name) => binaryen.Features[name]);
if (features.includes(undefined)) throw new Error(`one of the features ${FEATURES} is not known`);

// Names of functions are kept: what comes next orders functions by them.
binaryen.setDebugInfo(true);
const module = binaryen.readBinary(readFileSync(file), features.reduce((all, one) => all | one));
const functions = Array.from({ length: module.getNumFunctions() }, (_, index) =>
  binaryen.getFunctionInfo(module.getFunctionByIndex(index)),
);
const panics = functions.filter(({ name }) => PANICS.test(name));
if (panics.length === 0) throw new Error(`${file}: no function that panics; are their names still the same?`);
for (const { name, params, results } of panics) {
  module.removeFunction(name);
  module.addFunction(name, params, results, [], module.unreachable());
}
for (const { name, params, results } of functions.filter(({ name }) => FRACTIONS.test(name))) {
  module.removeFunction(name);
  // `Ok(())`: nothing is shown.
  module.addFunction(name, params, results, [], module.i32.const(0));
}
if (!module.validate()) throw new Error(`${file}: not valid any more`);
writeFileSync(file, module.emitBinary());
