// Reads the binary format of a WebAssembly module: numbers, names and sections.

/** The id of sections that only tools read; each has a name. */
export const CUSTOM = 0;

/** Reads numbers, names and positions of a module from an offset on. */
export function reader(bytes, at = 0) {
  const read = {
    get at() {
      return at;
    },
    byte: () => bytes[at++],
    skip: (count) => (at += count),
    number() {
      let [value, scale] = [0, 1];
      for (;;) {
        const byte = bytes[at++];
        value += (byte & 0x7f) * scale;
        if (byte < 0x80) return value;
        scale *= 0x80;
      }
    },
    name() {
      const length = read.number();
      at += length;
      return bytes.toString('utf8', at - length, at);
    },
    list: (item) => Array.from({ length: read.number() }, (_, index) => item(index)),
  };
  return read;
}

/** The sections of a module: where each begins, where its contents begin, and where it ends. */
export function sections(bytes) {
  const found = [];
  const read = reader(bytes, 8);
  while (read.at < bytes.length) {
    const start = read.at;
    const id = read.byte();
    const length = read.number();
    const contents = read.at;
    const name = id === CUSTOM ? read.name() : '';
    found.push({ id, name, start, contents, body: read.at, end: contents + length });
    read.skip(contents + length - read.at);
  }
  return found;
}

/** The number of imports, all of which are functions; `section` is that of the imports, if there is one. */
export function importedFunctions(bytes, section) {
  if (!section) return 0;
  const read = reader(bytes, section.contents);
  return read.list(() => {
    read.name();
    read.name();
    const kind = read.byte();
    if (kind !== 0) throw new Error(`an import of kind ${kind}: only functions are expected`);
    read.number();
  }).length;
}

/** The bodies of a module's own functions: where each begins, and where it ends; `section` is that of the code. */
export function functionBodies(bytes, section) {
  const read = reader(bytes, section.contents);
  return read.list(() => {
    const length = read.number();
    const start = read.at;
    read.skip(length);
    return { start, end: start + length };
  });
}
