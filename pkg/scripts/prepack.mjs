// Completes this folder before npm packs it: the project's licences and changelog, and the checksums of the built modules.
import { copyFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { checksums } from './checksums.mjs';

/** Files of the repository that the package has too. */
const DOCUMENTS = ['CHANGELOG.md', 'LICENSE-APACHE', 'LICENSE-MIT'];

const PACKAGE = new URL('../', import.meta.url);

for (const name of DOCUMENTS) copyFileSync(new URL(`../${name}`, PACKAGE), new URL(name, PACKAGE));
const dist = new URL('dist/', PACKAGE);
writeFileSync(new URL('SHA256SUMS', dist), checksums(fileURLToPath(dist)));
