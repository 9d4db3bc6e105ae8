// A soak of the server: mixed load on a development chain with API keys, while keys are created and revoked, the chain
// reorganises, certificates are replaced and clients are killed in the middle of a message. Prints a report, and fails
// if a condition does not hold.
//
//   ROOTLIGHT=.. ROOTLIGHT_TOKEN=.. node soak.mjs [MINUTES=15]
//
// Blocks are mined on request, so that this script knows every block and log that the subscribers must be told of. One key
// sends all transactions: pending ones are told to the subscribers of that key alone.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Chain } from './soak/chain.mjs';
import { callers, socketCallers } from './soak/callers.mjs';
import { killedClients, revokedKeys } from './soak/churn.mjs';
import { Server } from './soak/server.mjs';
import { Statistics } from './soak/statistics.mjs';
import { Subscriber } from './soak/subscriber.mjs';

const MINUTES = Number(process.argv[2] ?? 15);
/** Subscribers whose events are counted. */
const SUBSCRIBERS = 6;
const HTTP_CALLERS = 6;
const SOCKET_CALLERS = 4;
/** Measurements of memory. */
const SAMPLES = 60;
/** Growth of the last third's memory over that of the second third that counts as flat: a share, and MiB. */
const FLAT = { share: 0.03, mebibytes: 4 };
/** Longest wait for the last events, in milliseconds. */
const SETTLE = 30_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function run(server, statistics) {
  const chain = new Chain(server, statistics);
  await chain.prepare();
  const subscribers = [];
  for (let i = 0; i < SUBSCRIBERS; i++) subscribers.push(await Subscriber.open(server, chain.token));
  const limit = Date.now() + MINUTES * 60_000;
  const running = () => Date.now() < limit;
  const memory = [];
  const measured = (async () => {
    for (let i = 1; i <= SAMPLES; i++) {
      await sleep((MINUTES * 60_000) / SAMPLES);
      memory.push(server.resident());
    }
  })();
  await Promise.all([
    measured,
    chain.run(running),
    ...Array.from({ length: HTTP_CALLERS }, () => callers(server, chain, statistics, running)),
    ...Array.from({ length: SOCKET_CALLERS }, () => socketCallers(server, chain, statistics, running)),
    killedClients(server, chain, statistics, running),
    revokedKeys(server, chain, statistics, running),
    server.replaceCertificates(statistics, running),
  ]);
  const settled = Date.now() + SETTLE;
  while (Date.now() < settled && subscribers.some((one) => one.received < chain.expected(one.key).length)) await sleep(50);
  // Events beyond those that are expected would come now.
  await sleep(1_000);
  return { chain, subscribers, memory };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Prints the report; returns the conditions that do not hold. */
function report({ chain, subscribers, memory }, statistics) {
  const failed = [];
  const check = (holds, text) => holds || failed.push(text);
  console.log(statistics.text());
  check(statistics.statuses(500).length === 0, `answers with 5xx: ${statistics.statuses(500)}`);
  check(statistics.faults.length === 0, `${statistics.faults.length} unexpected answers, for example ${statistics.faults[0]}`);

  const { reorganisations, blocks, transactions, sideBlocks } = chain;
  console.log(`chain: ${blocks} blocks, ${transactions} transactions, ${reorganisations} reorganisations, ${sideBlocks} side blocks`);
  const received = subscribers.reduce((sum, one) => sum + one.received, 0);
  const expected = subscribers.reduce((sum, one) => sum + chain.expected(one.key).length, 0);
  console.log(`subscription events of ${subscribers.length} subscribers: ${expected} expected, ${received} received`);
  for (const subscriber of subscribers) {
    const { missing, excess } = subscriber.compare(chain.expected(subscriber.key));
    check(missing.length + excess.length === 0 && subscriber.open,
      `a subscriber (${subscriber.open ? 'open' : 'closed'}) misses ${missing.length}, for example ${missing[0]}, and has ${excess.length} too many, for example ${excess[0]}`);
  }

  const third = Math.floor(memory.length / 3);
  const [second, last] = [mean(memory.slice(third, 2 * third)), mean(memory.slice(2 * third))];
  console.log(`resident memory, MiB: ${memory.map((value) => value.toFixed(0)).join(' ')}`);
  console.log(`second third ${second.toFixed(1)}, last third ${last.toFixed(1)}`);
  check(last <= second * (1 + FLAT.share) + FLAT.mebibytes, 'resident memory grows');
  return failed;
}

const folder = mkdtempSync(join(tmpdir(), 'rootlight-soak-'));
const server = new Server(folder);
const statistics = new Statistics();
try {
  await server.start();
  console.log(`soak of ${MINUTES} minutes, ${server.secure ? 'TLS' : 'without TLS'}`);
  const failed = report(await run(server, statistics), statistics);
  failed.forEach((text) => console.log(`FAILED: ${text}`));
  console.log(failed.length === 0 ? 'all conditions hold' : `${failed.length} conditions do not hold`);
  process.exitCode = failed.length === 0 ? 0 : 1;
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
