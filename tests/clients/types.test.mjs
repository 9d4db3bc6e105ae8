// The package's types beside those of viem, ethers and web3.js.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

test('the package\'s providers have the types of viem, ethers and web3.js, and take the wallets of these', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '--project', 'types'], { cwd: FOLDER, encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
});
