// Replaces panics by traps, and overwrites with zeros the constants that only panics use: `node trap.mjs MODULE`. A module cannot
// print a panic's message, and would trap after it had built the message, so only code and constants for messages are lost. The
// standard library's code that formats numbers with a fraction is replaced too, and that of serde_json: no value of the module is such a
// number, and errors quote it as a question mark. So are the tables of printable characters: quoted texts show everything but ASCII as
// escapes.
//
// The module must be linked with `--emit-relocs`: it then says which function and which constant refers to which. A constant is
// unused if no exported function reaches it other than through what is replaced. The sections with this information are removed.
import { readFileSync, writeFileSync } from 'node:fs';
import { CUSTOM, functionBodies, importedFunctions, reader, sections } from './module.mjs';

/** A path in the standard library as rustc mangles it. */
const path = (rest) => new RegExp(`^_RI?(N[a-zA-Z])+Cs[0-9A-Za-z]*_${rest}`);

/**
 * The functions that are replaced, by their mangled names, and the instructions that take their place. `panics`: the function never
 * returns.
 */
const REPLACED = [
  { name: path('4core(9panicking|3str\\d+slice_\\w*fail|5slice5index\\d+slice_\\w*fail|5slice20copy_from_slice_impl17len_mismatch_fail|6(option|result)\\d+(unwrap|expect)_failed)'), panics: true },
  { name: path('3std9panicking15panic_with_hook'), panics: true },
  { name: path('5alloc7raw_vec12handle_error'), panics: true },
  { name: /^_RNvNvMs\w*_NtCs\w+_5alloc3vec\w+13assert_failed$/, panics: true },
  { name: /^_ZN5bytes\d+panic_/, panics: true },
  // Returns `Ok(())` without formatting anything.
  { name: path('4core3fmt5float\\d+float_to_decimal_common_'), instead: [0x41, 0] },
  // Writes `?` to the address in the second parameter, and returns the end of what is written.
  { name: /f64.*write_to_zmij_buffer/, instead: [0x20, 1, 0x41, 0x3f, 0x3a, 0, 0, 0x20, 1, 0x41, 1, 0x6a] },
  // The number of characters of a text is that of its bytes: only texts that are padded to a width are counted.
  { name: path('4core3str5count(14do_count_chars|23char_count_general_case)'), instead: [0x20, 1] },
  // No character extends the one before it, and those from space to tilde are printable: `c - 32 < 95`.
  { name: path('4core7unicode12unicode_data15grapheme_extend11lookup_slow'), instead: [0x41, 0] },
  { name: path('4core7unicode9printable12is_printable'), instead: [0x20, 0, 0x41, 0x20, 0x6b, 0x41, 0xdf, 0, 0x49] },
];
/** The powers of ten from which serde_json makes numbers with a fraction. They take two kilobytes, and no compression makes them shorter. */
const POWERS = /10serde_json2de5POW10/;
const [UNREACHABLE, NOTHING, END] = [0x00, 0x01, 0x0b];

const [TYPE, IMPORT, FUNCTION, EXPORT, CODE, DATA] = [1, 2, 3, 7, 10, 11];
/** Kinds of symbols. */
const [OF_FUNCTION, OF_DATA, OF_SECTION] = [0, 1, 3];
/** Symbol flags: defined elsewhere, and a name that differs from the import's. */
const [UNDEFINED, EXPLICIT_NAME] = [0x10, 0x40];
/** Kinds of relocations: those that name a constant's address (with an addend), and those that name a function. */
const ADDRESSES = new Set([3, 4, 5, 11, 14, 15, 16, 23]);
const WITH_ADDEND = new Set([...ADDRESSES, 8, 9, 22]);
const CALL = 0;
const FUNCTIONS = new Set([CALL, 1, 2, 12, 18, 19, 24, 26]);
/** Instructions. */
const [CALLS, CONSTANT, LOCAL] = [0x10, 0x41, 0x20];

/** The names of functions, each with the function's index. */
function functionNames(bytes, { body, end }) {
  const read = reader(bytes, body);
  while (read.at < end) {
    const kind = read.byte();
    const length = read.number();
    if (kind === 1) return read.list(() => [read.number(), read.name()]);
    read.skip(length);
  }
  throw new Error('functions have no names');
}

/** The symbols of a linked module, by their index. */
function symbols(bytes, { body, end }) {
  const read = reader(bytes, body);
  read.number();
  while (read.at < end) {
    const kind = read.byte();
    const length = read.number();
    if (kind === 8) return read.list(() => symbol(read));
    read.skip(length);
  }
  throw new Error('the linker wrote no symbols');
}

function symbol(read) {
  const kind = read.byte();
  const flags = read.number();
  const defined = !(flags & UNDEFINED);
  if (kind === OF_SECTION) return { kind, section: read.number() };
  if (kind !== OF_DATA) {
    const index = read.number();
    return { kind, index, name: defined || flags & EXPLICIT_NAME ? read.name() : '' };
  }
  const name = read.name();
  return defined ? { kind, name, segment: read.number(), offset: read.number(), size: read.number() } : { kind, name };
}

/** The relocations of a section, in the order of their places in the file. */
function relocations(bytes, all, target) {
  const section = all.find(({ id, name, body }) => id === CUSTOM && name.startsWith('reloc.') && all[reader(bytes, body).number()] === target);
  if (!section) throw new Error('the module was linked without --emit-relocs');
  const read = reader(bytes, section.body);
  read.number();
  const found = read.list(() => {
    const [kind, place, symbol] = [read.byte(), target.contents + read.number(), read.number()];
    if (WITH_ADDEND.has(kind)) read.number();
    return { kind, place, symbol };
  });
  return found.sort((a, b) => a.place - b.place);
}

const bytes = readFileSync(process.argv[2]);
const all = sections(bytes);
const section = (id) => all.find((one) => one.id === id);
const linking = all.find(({ name }) => name === 'linking');
if (!linking) throw new Error('the module was linked without --emit-relocs');
const table = symbols(bytes, linking);

// Functions: where each is in the file, its name, and how many parameters it takes.
const types = reader(bytes, section(TYPE).contents);
const signatures = types.list(() => {
  types.byte();
  return { parameters: types.list(() => types.byte()).length, results: types.list(() => types.byte()).length };
});
const imported = importedFunctions(bytes, section(IMPORT));
const declared = reader(bytes, section(FUNCTION).contents);
const typeOf = declared.list(() => declared.number());
const functions = functionBodies(bytes, section(CODE));
const names = functionNames(bytes, all.find(({ name }) => name === 'name'));
const signature = (index) => signatures[typeOf[index - imported]];

/** Gives a function no locals, these instructions, and as many that do nothing as it was long. */
function replace({ start, end }, instructions) {
  bytes.fill(NOTHING, start, end);
  bytes.set([0, ...instructions], start);
  bytes[end - 1] = END;
}

const replaced = new Set();
for (const { name: pattern, panics, instead = [UNREACHABLE] } of REPLACED) {
  const found = names.filter(([, name]) => pattern.test(name));
  if (panics && pattern === REPLACED[0].name && found.length === 0) throw new Error('there is no function that panics; have the names changed?');
  for (const [index, name] of found) {
    const { start, end } = functions[index - imported];
    if (signature(index).results !== (panics ? 0 : 1)) throw new Error(`${name} returns something else than expected`);
    if (panics && bytes[end - 2] !== UNREACHABLE) throw new Error(`${name} may return`);
    if (end - start < instead.length + 2) throw new Error(`${name} is too short to be replaced`);
    replace(functions[index - imported], instead);
    replaced.add(index);
  }
}

// Constants: where each is in the file.
const data = reader(bytes, section(DATA).contents);
const segments = data.list(() => {
  if (data.number() !== 0) throw new Error('a passive data segment');
  while (data.byte() !== 0x0b);
  const length = data.number();
  const start = data.at;
  data.skip(length);
  return { start, length };
});
const constants = table.map((one) => {
  const segment = one.kind === OF_DATA ? segments[one.segment] : undefined;
  if (!segment || one.offset + one.size > segment.length) return undefined;
  return { start: segment.start + one.offset, end: segment.start + one.offset + one.size };
});

/** Whether the constant that the instruction at `place` pushes is for a function that is replaced: only pushes and then the call follow. */
function isUnused(place, calls) {
  const read = reader(bytes, place);
  read.number();
  for (let pushed = 1; ; pushed += 1) {
    const instruction = read.byte();
    if (instruction === CALLS) {
      const called = table[calls.get(read.at)]?.index;
      return replaced.has(called) && pushed <= signature(called).parameters;
    }
    if (instruction !== CONSTANT && instruction !== LOCAL) return false;
    read.number();
  }
}

const OUTSIDE = -1;

/** The symbols that each function and each constant refers to, by what `among` says is at a place. */
function references(target, among, except = () => false) {
  const found = new Map();
  const relocs = relocations(bytes, all, section(target));
  const calls = new Map(relocs.filter(({ kind }) => kind === CALL).map(({ place, symbol }) => [place, symbol]));
  for (const { kind, place, symbol } of relocs) {
    if (!FUNCTIONS.has(kind) && !ADDRESSES.has(kind)) continue;
    if (ADDRESSES.has(kind) && except(place, calls)) continue;
    // What refers to something from outside of every function and constant counts as used.
    const owners = among(place);
    for (const owner of owners.length > 0 ? owners : [OUTSIDE]) found.set(owner, [...(found.get(owner) ?? []), symbol]);
  }
  return found;
}

/** Returns a function that finds the ranges at a place. */
const place = (list) => {
  const sorted = list.map((range, index) => ({ ...range, index })).filter(({ start }) => start !== undefined).sort((a, b) => a.start - b.start);
  // Ranges may overlap, but none is longer than the longest.
  const longest = Math.max(...sorted.map(({ start, end }) => end - start));
  return (at) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle].start <= at - longest) low = middle + 1;
      else high = middle;
    }
    const found = [];
    for (let next = low; sorted[next]?.start <= at; next += 1) if (at < sorted[next].end) found.push(sorted[next].index);
    return found;
  };
};
const functionAt = place(functions);
const ofFunctions = references(CODE, functionAt, isUnused);
const ofConstants = references(DATA, place(constants.map((one) => one ?? {})));

/** Whether a constant is a `core::panic::Location`: the name of a source file, its length, line and column. Only messages of panics use it. */
function isLocation(id) {
  const one = constants[id];
  if (!one || one.end - one.start !== 16) return false;
  const file = constants[ofConstants.get(id)?.[0]];
  return file !== undefined && bytes.toString('latin1', file.start, file.start + bytes.readUInt32LE(one.start + 4)).endsWith('.rs');
}

// Everything that the exported functions reach.
const exports = reader(bytes, section(EXPORT).contents);
const reached = { functions: new Set(), constants: new Set() };
const waiting = exports
  .list(() => {
    exports.name();
    return { isFunction: exports.byte() === 0, index: exports.number() };
  })
  .filter(({ isFunction }) => isFunction)
  .map(({ index }) => ({ kind: OF_FUNCTION, index }));
waiting.push({ kind: OF_DATA, id: OUTSIDE });
while (waiting.length > 0) {
  const { kind, index, id } = waiting.pop();
  const set = kind === OF_FUNCTION ? reached.functions : reached.constants;
  const key = kind === OF_FUNCTION ? index : id;
  if (set.has(key) || (kind === OF_FUNCTION ? replaced.has(index) : isLocation(id))) continue;
  set.add(key);
  const next = kind === OF_FUNCTION ? ofFunctions.get(index - imported) : ofConstants.get(id);
  for (const symbol of next ?? []) {
    const one = table[symbol];
    if (one.kind === OF_FUNCTION || one.kind === OF_DATA) waiting.push({ kind: one.kind, index: one.index, id: symbol });
  }
}

// The table of functions keeps all whose address the linker saw somewhere, although only a message of a panic may have used it.
functions.forEach((body, index) => !reached.functions.has(index + imported) && !replaced.has(index + imported) && replace(body, [UNREACHABLE]));

// Every power of ten becomes one.
const ONE = Buffer.from(Float64Array.of(1).buffer);
table.forEach(({ kind, name }, id) => kind === OF_DATA && POWERS.test(name) && constants[id] && bytes.fill(ONE, constants[id].start, constants[id].end));

const kept = constants.filter((one, id) => one && reached.constants.has(id));
const zeroed = Buffer.from(bytes);
constants.forEach((one, id) => one && !reached.constants.has(id) && zeroed.fill(0, one.start, one.end));
// Constants may share bytes.
for (const { start, end } of kept) bytes.copy(zeroed, start, start, end);
const parts = all.filter(({ name }) => name !== 'linking' && !name.startsWith('reloc.'));
writeFileSync(process.argv[2], Buffer.concat([zeroed.subarray(0, 8), ...parts.map(({ start, end }) => zeroed.subarray(start, end))]));
const size = (list) => list.reduce((sum, { start, end }) => sum + end - start, 0);
console.log(`${size(constants.filter(Boolean)) - size(kept)} of ${size(constants.filter(Boolean))} bytes of constants are unused`);
