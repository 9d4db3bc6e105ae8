// The indexer Ponder, as a program of its own, on a chain of 2,000 blocks and through reorganisations: it has each transfer of
// the canonical chain once, from logs, receipts and call traces.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createWalletClient, encodeDeployData, encodeFunctionData, http } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { call, MNEMONIC, startChain, token } from '../chain.mjs';

const TO = '0x00000000000000000000000000000000000000aa';
const account = mnemonicToAccount(MNEMONIC);
/** Longest time without progress of Ponder, in milliseconds. */
const STALL = 240_000;
let chain, folder, ponder, url, address;

/** A port that nothing listens at. */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Sends transfers of these values, and mines a block for each list. */
async function blocks(lists) {
  const send = (from, value) => call(chain.url, 'eth_sendTransaction', { from, to: address, gas: '0x186a0', data: encodeFunctionData({ abi: token.abi, functionName: 'transfer', args: [TO, value] }) });
  for (const list of lists) {
    for (const value of list) await send(account.address, value);
    await call(chain.url, 'evm_mine');
  }
}

/** What the chain itself has: block hashes and values. */
async function canonical() {
  const logs = await call(chain.url, 'eth_getLogs', { address, fromBlock: '0x0', toBlock: 'latest', topics: ['0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'] });
  return logs.map(({ blockHash, data }) => `${blockHash} ${BigInt(data)}`).sort();
}

const rows = async () => (await fetch(`${url}/rows`)).json();

const indexed = async () => {
  const { transfers } = await rows();
  return transfers.map(({ block, value }) => `${block} ${BigInt(value)}`).sort();
};

/** Blocks and events that Ponder has worked off, by its own counters. */
async function progress() {
  const text = await fetch(`${url}/metrics`).then((response) => response.text(), () => '');
  return text.split('\n').filter((line) => /^ponder_(historical_completed|indexing_completed|sync_block)/.test(line)).join();
}

/** Waits as long as Ponder gets on, which takes minutes on a busy machine. Ponder works on one thread, so it is not asked often. */
async function patiently(ready, what) {
  for (let [last, since] = ['', Date.now()]; !(await ready()); await sleep(250)) {
    assert.equal(ponder.child.exitCode, null, 'Ponder runs');
    const now = await progress();
    if (now !== last) [last, since] = [now, Date.now()];
    assert.ok(Date.now() - since < STALL, `Ponder makes no progress: ${what}`);
  }
}

async function agrees(what) {
  const wanted = await canonical();
  await patiently(async () => JSON.stringify(await indexed()) === JSON.stringify(wanted), what);
  return wanted;
}

before(async () => {
  chain = await startChain('--block-time', 'manual', '--log-level', 'warn');
  const deployer = createWalletClient({ account, chain: { ...rootstock, id: 33 }, transport: http(chain.url) });
  const data = encodeDeployData({ abi: token.abi, bytecode: token.bytecode, args: ['Indexed', 1_000_000n] });
  const hash = await deployer.sendTransaction({ data, gas: 3_000_000n, type: 'legacy' });
  await call(chain.url, 'evm_mine');
  address = (await call(chain.url, 'eth_getTransactionReceipt', hash)).contractAddress;
  for (let round = 1n; round <= 100n; round++) {
    await blocks([[round], [round, 10n ** 12n]]);
    await call(chain.url, 'hardhat_mine', '0x12');
  }
  folder = mkdtempSync(join(tmpdir(), 'rootlight-ponder-'));
  const port = await freePort();
  const program = fileURLToPath(new URL('./node_modules/ponder/dist/esm/bin/ponder.js', import.meta.url));
  const env = { ...process.env, CHAIN_URL: chain.url, TOKEN_ADDRESS: address, PONDER_TELEMETRY_DISABLED: 'true', DATABASE_FOLDER: folder };
  const args = ['start', '--schema', 'test', '--port', `${port}`, '--hostname', '127.0.0.1', '--log-level', 'warn'];
  const child = spawn(process.execPath, [program, ...args], { cwd: fileURLToPath(new URL('.', import.meta.url)), env, stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  ponder = { child, stop: () => (child.kill(), ended) };
  url = `http://127.0.0.1:${port}`;
  await patiently(() => fetch(`${url}/ready`).then(({ ok }) => ok, () => false), 'the chain is indexed');
});

after(async () => {
  await ponder?.stop();
  await chain?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test('2,000 blocks are indexed', async () => {
  assert.ok(Number(await call(chain.url, 'eth_blockNumber')) >= 2_000);
  // With the transfer that the constructor logs.
  assert.equal((await agrees('the transfers of the chain')).length, 201);
  const { attempts, transfers } = await rows();
  // Traces have the failed calls too, which Ponder leaves out.
  assert.equal(attempts.length, 200);
  assert.ok(transfers.every(({ gas }) => BigInt(gas) > 21_000n));
});

test('new blocks and reorganisations are followed', async () => {
  await blocks([[7n], [8n, 9n]]);
  await agrees('new blocks');
  for (const depth of [1, 6, 20]) {
    const snapshot = await call(chain.url, 'evm_snapshot');
    await blocks(Array.from({ length: depth }, (_, index) => [BigInt(1_000 * depth + index)]));
    const left = await agrees(`a branch of ${depth} blocks`);
    await call(chain.url, 'evm_revert', snapshot);
    await blocks(Array.from({ length: depth + 2 }, (_, index) => (index % 2 ? [] : [BigInt(2_000 * depth + index)])));
    const now = await agrees(`the branch that took the place of ${depth} blocks`);
    assert.equal(left.filter((row) => !now.includes(row)).length, depth);
  }
});
