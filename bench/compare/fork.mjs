// Exchanges of a fork with its upstream: the start, the first transfer of an ERC-20 that nothing is known of, later ones, and
// the same again after a restart; `rootlight dev --fork` beside anvil's fork of the same node, which a proxy counts. The
// counts do not depend on the machine's load.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. ANVIL=.. node fork.mjs
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Node } from './node.mjs';
import { ask, proxy } from './proxy.mjs';
import { balanceOf, setup, stranger, transfer, transferCall, wallets } from './wallets.mjs';

const [UPSTREAM, FORK] = [14_461, 14_462];
/** Accounts of the network, and holders of the token. */
const ACCOUNTS = 300;
const LATER = 10;

async function network() {
  const command = [process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--http-port', `${UPSTREAM}`];
  const node = await Node.start(command, UPSTREAM);
  const send = (transaction) => node.connection.call('eth_sendRawTransaction', transaction);
  for (const transaction of await setup()) await send(transaction);
  await node.connection.call('evm_mine');
  for (let i = 0; i < ACCOUNTS; i += wallets.length) {
    for (let k = 0; k < wallets.length; k++) await send(await transfer(k, stranger(i + k), 1n));
    await node.connection.call('evm_mine');
  }
  await node.connection.call('evm_mine', { blocks: 20 });
  return node;
}

/** Sends a transfer of a holder's tokens and waits for its receipt. */
async function move({ connection }, holder, to) {
  const hash = await connection.call('eth_sendTransaction', { from: holder, ...transferCall(to, 1n), gas: '0x186a0' });
  for (;;) {
    const receipt = await connection.call('eth_getTransactionReceipt', hash);
    if (receipt) {
      if (receipt.status !== '0x1') throw new Error(`the transfer failed: ${JSON.stringify(receipt)}`);
      break;
    }
    await sleep(5);
  }
  const balance = await connection.call('eth_call', balanceOf(to), 'latest');
  if (BigInt(balance) !== 1n) throw new Error(`a wrong balance: ${balance}`);
}

/** Exchanges and calls since the last time. */
function counted(upstream) {
  const seen = upstream.seen.splice(0);
  return { exchanges: seen.length, calls: seen.flatMap(({ methods }) => methods).length, bytes: seen.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** Starts a fork, moves tokens of one impersonated holder, then of others; counts each part. */
async function suite(command, upstream) {
  upstream.seen.length = 0;
  const node = await Node.start(command, FORK);
  const parts = { start: counted(upstream) };
  try {
    const impersonate = (holder) => node.connection.call('anvil_impersonateAccount', holder);
    const [first, ...others] = wallets.map(({ address }) => address);
    await impersonate(first);
    parts.impersonation = counted(upstream);
    await move(node, first, stranger(900_000));
    parts['first transfer'] = counted(upstream);
    await move(node, first, stranger(900_001));
    parts['second transfer, to another account'] = counted(upstream);
    for (let i = 0; i < LATER; i++) {
      const holder = others[i % others.length];
      await impersonate(holder);
      await move(node, holder, stranger(900_002 + i));
    }
    parts[`${LATER} more, from ${others.length} holders`] = counted(upstream);
  } finally {
    await node.stop();
  }
  return parts;
}

function report(name, parts) {
  for (const [part, { exchanges, calls, bytes }] of Object.entries(parts)) {
    console.log(`${name}, ${part}: ${exchanges} exchanges, ${calls} calls, ${(bytes / 1_000).toFixed(1)} kB`);
  }
}

const node = await network();
const folder = mkdtempSync(join(tmpdir(), 'fork-'));
try {
  const { number, hash } = await node.connection.call('eth_getBlockByNumber', 'latest', false);
  const height = Number(number);
  const upstream = await proxy(ask(UPSTREAM));
  const command = [process.env.ROOTLIGHT, 'dev', '--fork', upstream.url, '--fork-block', `${height}:${hash}`, '--data-dir', folder, '--http-port', `${FORK}`];
  report('rootlight', await suite(command, upstream));
  report('rootlight after a restart', await suite(command, upstream));
  if (process.env.ANVIL) {
    const flags = ['--fork-url', upstream.url, '--fork-block-number', `${height}`, '--gas-price', '0', '--base-fee', '0', '--no-storage-caching'];
    report('anvil', await suite([process.env.ANVIL, '--silent', '--port', `${FORK}`, ...flags], upstream));
  }
  upstream.close();
} finally {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
}
