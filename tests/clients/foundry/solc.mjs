#!/usr/bin/env node
// The compiler of the npm package solc with the command line of the native one, as far as forge uses it: forge would download one.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const solc = createRequire(join(process.env.ROOTLIGHT_CLIENTS, 'package.json'))('solc');
if (process.argv.includes('--version')) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version()}`);
} else {
  process.stdout.write(solc.compile(readFileSync(0, 'utf8')));
}
