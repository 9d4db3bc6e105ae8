// Searches for logs of a contract that has none, on a development chain of many empty blocks: the server's processor time
// per request, in microseconds, beside that of an HTTP server with a constant answer.
//
//   ROOTLIGHT=.. FLOOR=.. [BLOCKS=1000000] [ROUNDS=5] node logs.mjs
//
// Each empty block takes some 8 kB of memory, so a million take 8 GB and three minutes.
import { Connection, Node, call, median } from './node.mjs';

const BLOCKS = Number(process.env.BLOCKS ?? 1_000_000);
const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** Most blocks that one request may mine. */
const AT_ONCE = 5_000;
/** Processor seconds that a round takes at least: times are told in hundredths of a second. */
const LEAST = 0.5;
const SILENT = '0x00000000000000000000000000000000000000aa';

const hex = (number) => `0x${number.toString(16)}`;

async function pass(node, request, count) {
  const before = node.processorTime();
  for (let i = 0; i < count; i++) await node.connection.send(request);
  return (node.processorTime() - before) / count;
}

async function measure(node, request) {
  let count = 1;
  let each = 0;
  while (each * count < LEAST / 4) {
    count *= 4;
    each = await pass(node, request, count);
  }
  count = Math.ceil(LEAST / each);
  const samples = [];
  for (let round = 0; round <= ROUNDS; round++) samples.push(await pass(node, request, count));
  return 1e6 * median(samples.slice(1));
}

const running = [];
try {
  const floor = await Node.start([process.env.FLOOR, '14451'], 14451);
  running.push(floor);
  const least = await measure(floor, Connection.request(call('eth_blockNumber')));
  const node = await Node.start(
    [process.env.ROOTLIGHT, 'dev', '--genesis', 'regtest', '--block-time', 'manual', '--history', '10', '--http-port', '14452'],
    14452,
  );
  running.push(node);
  for (let at = 0; at < BLOCKS; at += AT_ONCE) await node.connection.call('evm_mine', { blocks: Math.min(AT_ONCE, BLOCKS - at) });
  console.log(`HTTP alone: ${least.toFixed(1)} us; ${BLOCKS} blocks, ${node.resident().toFixed(0)} MiB resident`);
  const own = await measure(node, Connection.request(call('eth_blockNumber')));
  console.log(`eth_blockNumber: ${(own - least).toFixed(1)} us above HTTP alone`);
  for (const blocks of [1_000, 2_000, BLOCKS]) {
    const range = { fromBlock: hex(BLOCKS - blocks), toBlock: hex(BLOCKS - 1), address: SILENT };
    const request = Connection.request(call('eth_getLogs', range));
    const answer = await node.connection.send(request);
    if (!answer.endsWith('"result":[]}')) throw new Error(answer.slice(0, 300));
    const time = await measure(node, request);
    console.log(`eth_getLogs, none in ${blocks} blocks: ${(time - least).toFixed(1)} us above HTTP alone`);
  }
} finally {
  for (const node of running) await node.stop();
}
