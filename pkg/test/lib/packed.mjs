// The package as it is published.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));

/** Packs the package into a folder; returns the tarball's path and the names of the files in it. */
export function packed(folder) {
  // The output of the script `prepack` would stand before the JSON text.
  const args = ['pack', '--json', '--foreground-scripts=false', '--pack-destination', folder];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: PACKAGE, encoding: 'utf8' });
  assert.equal(status, 0, `npm pack: ${stdout}${stderr}`);
  const [{ filename, files }] = JSON.parse(stdout);
  return { tarball: join(folder, filename), names: files.map(({ path }) => path).sort() };
}
