// foundry's script on the development chain, by the command line of README. `FORGE` names the program.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { call, startChain } from './chain.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const run = promisify(execFile);

// The key of the first account of the mnemonic "test test ... junk".
const KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

/** The arguments of forge's script in README, on another port. */
function documented(url) {
  const [, line] = /^forge (script .*)$/m.exec(readFileSync(join(here, '../../README.md'), 'utf8'));
  const words = line.replace('http://127.0.0.1:4444', url).replace('$KEY', KEY).split(' ');
  assert.ok(words.includes(url) && words.includes(KEY), line);
  return words;
}

test('a script deploys a contract and calls it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-forge-'));
  const chain = await startChain();
  try {
    cpSync(join(here, 'foundry'), join(folder, 'foundry'), { recursive: true });
    cpSync(join(here, 'Token.sol'), join(folder, 'foundry/src/Token.sol'));
    // Nothing is downloaded: the compiler is that of the npm package.
    const args = [...documented(chain.url), '--use', join(folder, 'foundry/solc.mjs'), '--offline', '--non-interactive'];
    const env = { ...process.env, ROOTLIGHT_CLIENTS: here, HOME: folder };
    await run(process.env.FORGE, args, { cwd: join(folder, 'foundry'), env, timeout: 100_000 });
    const { transactions, receipts } = JSON.parse(readFileSync(join(folder, 'foundry/broadcast/Deploy.s.sol/33/run-latest.json'), 'utf8'));
    assert.deepEqual(receipts.map(({ status }) => status), ['0x1', '0x1']);
    const { contractAddress } = transactions[0];
    const data = `0x70a08231${'aa'.padStart(64, '0')}`;
    assert.equal(BigInt(await call(chain.url, 'eth_call', { to: contractAddress, data }, 'latest')), 7n);
  } finally {
    await chain.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
