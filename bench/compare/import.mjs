// Executes blocks of the reference node again: with `rootlight follow`, which fetches them over loopback,
// checks headers, recovers senders and compares all roots, and with the reference node's own tool on its
// database.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. REFERENCE=".." REFERENCE_EXECUTE=".." node import.mjs
//
// REFERENCE is the command of transfers.mjs, with an empty database. REFERENCE_EXECUTE is the command that
// runs execute-blocks on that database (the arguments -fb and -tb are added).
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { Connection, Node, call, processorTime } from './node.mjs';
import { setup, stranger, transfer, wallets } from './wallets.mjs';

const BLOCKS = 400;
/** Transfers in a block, about as many as in main network blocks. */
const PER_BLOCK = 6;

const request = Connection.request;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function good(text) {
  if (text.includes('"error"')) throw new Error(text.slice(0, 400));
}

async function fill(connection) {
  for (const transaction of await setup()) {
    await connection.call('eth_sendRawTransaction', transaction);
    await connection.call('evm_mine');
  }
  let next = 0;
  for (let block = wallets.length; block < BLOCKS; block++) {
    const all = [];
    for (let i = 0; i < PER_BLOCK; i++, next++) {
      all.push(call('eth_sendRawTransaction', await transfer(next % wallets.length, stranger(next), 1n)));
    }
    good(await connection.send(request(`[${all}]`)));
    await connection.call('evm_mine');
  }
  return Number(await connection.call('eth_blockNumber'));
}

/** Measures the follower from its start to the head. */
async function follow(height) {
  const upstream = 'http://127.0.0.1:14444';
  const started = performance.now();
  const node = await Node.start([process.env.ROOTLIGHT, 'follow', '--upstream', upstream, '--http-port', '14441'], 14441);
  for (;;) {
    if (Number(await node.connection.call('eth_blockNumber')) >= height) break;
    if (performance.now() - started > 120_000) throw new Error('the follower did not reach the head in two minutes');
    await sleep(5);
  }
  const [clock, processor] = [performance.now() - started, node.processorTime()];
  await node.stop();
  return { clock, processor };
}

/** Measures the reference node's tool over blocks 1 to `last`, its start included. */
async function execute(last) {
  const command = [...process.env.REFERENCE_EXECUTE.split(' '), '-fb', '1', '-tb', `${last}`];
  const started = performance.now();
  const child = spawn(command[0], command.slice(1), { stdio: 'ignore', cwd: tmpdir() });
  const ended = new Promise((resolve) => child.once('exit', (code) => resolve({ code })));
  let processor = 0;
  for (;;) {
    const end = await Promise.race([ended, sleep(100)]);
    if (end?.code) throw new Error(`execute-blocks ended with ${end.code}`);
    if (end) return { clock: performance.now() - started, processor };
    processor = processorTime(child.pid) ?? processor;
  }
}

const reference = await Node.start(process.env.REFERENCE.split(' '), 14444);
const height = await fill(reference.connection);
const ours = await follow(height);
await reference.stop();
const start = await execute(1);
const whole = await execute(height);
const theirs = { clock: whole.clock - start.clock, processor: whole.processor - start.processor };
const rate = ({ clock }) => ((1000 * height) / clock).toFixed(0);
const ratio = (key) => (theirs[key] / ours[key]).toFixed(1);
console.log(`${height} blocks of ${PER_BLOCK} transfers: rootlight follow ${rate(ours)} blocks/s, fetching included`);
console.log(`the reference node's execute-blocks, without its start: ${rate(theirs)} blocks/s`);
console.log(`rootlight is ${ratio('clock')} times as fast, with 1/${ratio('processor')} of the processor time`);
