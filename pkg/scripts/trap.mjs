// Replaces panics by traps: `node trap.mjs MODULE`. A module cannot print a panic's message, and would trap after it had
// built the message, so only the code that builds messages is lost. The standard library's code that formats numbers with a
// fraction is removed too: only errors of serde could use it, and serde_json formats such numbers itself.
import { readFileSync, writeFileSync } from 'node:fs';
import binaryen from 'binaryen';

/** Functions of the standard library that never return: core::panicking, its callers and its callees. */
const PANICS = /^core(\[\w+\])?::(panicking::|(str|slice::index)::slice_\w*fail|(option|result)::(unwrap|expect)_failed)|::panicking::panic_with_hook$/;

/** Functions that format a number with a fraction: about fifteen kilobytes, with the functions that only they call. */
const FRACTIONS = /^core(\[\w+\])?::fmt::float::float_to_decimal_common_(exact|shortest)(::<f64>)?(::h[0-9a-f]{16})?$/;

/** The features that rustc's wasm32 target uses, as in xtask/src/wasm.rs. */
const FEATURES = ['BulkMemory', 'Multivalue', 'MutableGlobals', 'NontrappingFPToInt', 'ReferenceTypes', 'SignExt'];

const file = process.argv[2];
const features = FEATURES.map((name) => binaryen.Features[name]);
if (features.includes(undefined)) throw new Error(`one of the features ${FEATURES} is not known`);

// Function names are kept, because the next step orders functions by name.
binaryen.setDebugInfo(true);
const module = binaryen.readBinary(readFileSync(file), features.reduce((all, one) => all | one));
const functions = Array.from({ length: module.getNumFunctions() }, (_, index) =>
  binaryen.getFunctionInfo(module.getFunctionByIndex(index)),
);
const panics = functions.filter(({ name }) => PANICS.test(name));
if (panics.length === 0) throw new Error(`${file}: there is no function that panics; have the names changed?`);
for (const { name, params, results } of panics) {
  module.removeFunction(name);
  module.addFunction(name, params, results, [], module.unreachable());
}
for (const { name, params, results } of functions.filter(({ name }) => FRACTIONS.test(name))) {
  module.removeFunction(name);
  // Returns `Ok(())` without formatting anything.
  module.addFunction(name, params, results, [], module.i32.const(0));
}
if (!module.validate()) throw new Error(`${file}: the result is not a valid module`);
writeFileSync(file, module.emitBinary());
