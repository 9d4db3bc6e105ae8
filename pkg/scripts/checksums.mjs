// The checksums of the built files of the package, in the format of sha256sum.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { files } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The names of the published modules and of their JavaScript sides, in `dist`. */
export const BUILT = files.filter((path) => /^dist\/.*\.(js|wasm)$/.test(path)).map((path) => path.slice('dist/'.length)).sort();

/** The line of each built file in a folder. */
export function checksums(folder) {
  const line = (name) => `${createHash('sha256').update(readFileSync(join(folder, name))).digest('hex')}  ${name}\n`;
  return BUILT.map(line).join('');
}
