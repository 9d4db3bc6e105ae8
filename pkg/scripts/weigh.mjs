// `node weigh.mjs FILE` checks that the engine accepts a WebAssembly module, and prints its size and its brotli-compressed size in bytes, and its
// SHA-256. xtask/src/wasm.rs reads the line.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { brotliCompressSync, constants } from 'node:zlib';

const bytes = readFileSync(process.argv[2]);
if (!WebAssembly.validate(bytes)) {
  console.error(`${process.argv[2]}: the engine rejects this module`);
  process.exit(1);
}
const brotli = brotliCompressSync(bytes, {
  params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
});
console.log(`${bytes.length} ${brotli.length} ${createHash('sha256').update(bytes).digest('hex')}`);
