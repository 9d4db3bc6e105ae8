// Checks the built files of a package: `node pkg/scripts/check.mjs PACKAGE [DIST]`. PACKAGE is a tarball or the folder of an installed
// package. Its files must have the checksums that it states, and be those in DIST, by default this repository's own build (`cargo
// xtask wasm`). The bytes of a build do not depend on the machine's folders.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checksums } from './checksums.mjs';

/** PACKAGE and DIST. */
const [given, built = fileURLToPath(new URL('../dist', import.meta.url))] = process.argv.slice(2);
if (!given) {
  console.error('give a tarball, or the folder of an installed package');
  process.exit(2);
}

/** The names of files whose checksums differ in two lists, or that only one list has. */
function differences(ours, theirs) {
  const [expected, found] = [ours, theirs].map((text) => new Set(text.trim().split('\n')));
  return [...expected].filter((line) => !found.has(line)).concat([...found].filter((line) => !expected.has(line))).map((line) => line.split('  ')[1] ?? line);
}

/** What is wrong with the files in a folder, in words. */
function wrong(folder) {
  const found = checksums(folder);
  const stated = differences(readFileSync(join(folder, 'SHA256SUMS'), 'utf8'), found);
  if (stated.length > 0) return `not as SHA256SUMS states: ${[...new Set(stated)].join(', ')}`;
  const modules = found.trim().split('\n').map((line) => line.split('  ')[1]);
  const more = readdirSync(folder).filter((name) => name !== 'SHA256SUMS' && !modules.includes(name));
  if (more.length > 0) return `not part of the package: ${more.join(', ')}`;
  const other = differences(checksums(built), found);
  return other.length > 0 ? `not as in ${built}: ${[...new Set(other)].join(', ')}` : undefined;
}

const unpacked = mkdtempSync(join(tmpdir(), 'rootlight-check-'));
try {
  let folder = given;
  if (statSync(given).isFile()) {
    const { status, stderr } = spawnSync('tar', ['-xzf', given, '-C', unpacked], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    folder = join(unpacked, 'package');
  }
  const reason = wrong(join(folder, 'dist'));
  if (reason) throw new Error(reason);
  console.log(`${given}: the modules are those of ${built}\n${checksums(built)}`.trim());
} catch ({ message }) {
  console.error(`${given}: ${message}`);
  process.exitCode = 1;
} finally {
  rmSync(unpacked, { recursive: true, force: true });
}
