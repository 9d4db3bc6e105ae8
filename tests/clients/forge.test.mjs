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
import { twiceOnFork } from './fork.mjs';

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

/** The account that gets tokens, and the call data of its balance. */
const OTHER = '0x00000000000000000000000000000000000000aa';
const BALANCE = `0x70a08231${'aa'.padStart(64, '0')}`;

/** Runs the script on the chain at a URL, and returns the token that it has deployed. */
async function deployed(url) {
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-forge-'));
  try {
    cpSync(join(here, 'foundry'), join(folder, 'foundry'), { recursive: true });
    cpSync(join(here, 'Token.sol'), join(folder, 'foundry/src/Token.sol'));
    // Nothing is downloaded: the compiler is that of the npm package.
    const args = [...documented(url), '--use', join(folder, 'foundry/solc.mjs'), '--offline', '--non-interactive'];
    const env = { ...process.env, ROOTLIGHT_CLIENTS: here, HOME: folder };
    await run(process.env.FORGE, args, { cwd: join(folder, 'foundry'), env, timeout: 100_000 });
    const { transactions, receipts } = JSON.parse(readFileSync(join(folder, 'foundry/broadcast/Deploy.s.sol/33/run-latest.json'), 'utf8'));
    assert.deepEqual(receipts.map(({ status }) => status), ['0x1', '0x1']);
    return transactions[0].contractAddress;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const balance = async (url, token) => BigInt(await call(url, 'eth_call', { to: token, data: BALANCE }, 'latest'));

test('a script deploys a contract and calls it, on the chain and on a fork of it', async () => {
  const chain = await startChain();
  try {
    const below = await deployed(chain.url);
    assert.equal(await balance(chain.url, below), 7n);
    await twiceOnFork(chain, async (url) => {
      assert.equal(await balance(url, below), 7n);
      assert.equal(await balance(url, await deployed(url)), 7n);
      // The account that got tokens below the fork sends some of them, a day later.
      await call(url, 'anvil_impersonateAccount', OTHER);
      await call(url, 'anvil_setBalance', OTHER, '0xde0b6b3a7640000');
      const { timestamp } = await call(url, 'eth_getBlockByNumber', 'latest', false);
      await call(url, 'evm_increaseTime', 86_400);
      const data = `0xa9059cbb${'bb'.padStart(64, '0')}${'3'.padStart(64, '0')}`;
      await call(url, 'eth_sendTransaction', { from: OTHER, to: below, data, gas: '0x186a0' });
      assert.equal(await balance(url, below), 4n);
      const after = await call(url, 'eth_getBlockByNumber', 'latest', false);
      assert.ok(Number(after.timestamp) >= Number(timestamp) + 86_400);
    });
  } finally {
    await chain.stop();
  }
});
