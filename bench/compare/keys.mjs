// The cost of a service's keys and limits for a front end: `rootlight serve` with --keys against the same without, both with the
// store and the database, in turn. Prints the processor time of each request in microseconds, as the median of the rounds,
// and the median of the rounds' ratios. Needs Redis and PostgreSQL.
//
//   ROOTLIGHT=.. [ROUNDS=5] node keys.mjs
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { postgres, Processes, redis } from '../../tests/clients/service/service.mjs';
import { Connection, call, median, processorTime } from './node.mjs';

const run = promisify(execFile);
/** Counted rounds; one more before them warms up. */
const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** Limits that no request exceeds. */
const LIMITS = ['--rps', '1000000', '--per-day', '1000000000'];

const processes = new Processes();

/** Lets wrk send requests for a second; returns the server's processor time for one. */
async function pass({ url, pid }, body) {
  const flags = ['-t1', '-c16', '-d1s', '-s', fileURLToPath(new URL('post.lua', import.meta.url)), url];
  const before = processorTime(pid);
  const { stdout } = await run('wrk', flags, { env: { ...process.env, BODY: body } });
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout);
  return (1e6 * (processorTime(pid) - before)) / Number(/(\d+) requests in/.exec(stdout)[1]);
}

try {
  const chain = await processes.rootlight('chain', 'dev', '--genesis', 'regtest', '--http-port', '0');
  const control = new Connection(Number(new URL(chain).port));
  await control.call('anvil_mine', '0x14');
  const { hash } = await control.call('eth_getBlockByNumber', '0x0', false);
  const [holder] = await control.call('eth_accounts');
  const stores = (await redis(processes)).flatMap((url) => ['--cluster', url]);
  const shared = [...stores, '--index', await postgres(processes)];
  const network = ['--network', 'regtest', '--checkpoint', `0:${hash}`, '--max-age', '0', '--http-port', '0'];
  const serve = async (name, ...flags) => {
    const url = await processes.rootlight(name, 'serve', ...network, '--backend', chain, ...shared, ...flags);
    return { url: `${url}/`, pid: processes.pid(name) };
  };
  const [open, keyed] = [await serve('open'), await serve('keyed', '--keys')];
  const { stdout } = await run(process.env.ROOTLIGHT, ['keys', 'create', '--name', 'bench', ...LIMITS, ...shared]);
  keyed.url += stdout.trim();
  for (const [method, ...params] of [['eth_chainId'], ['eth_blockNumber'], ['eth_getBalance', holder, 'latest']]) {
    const [without, withKey, ratios] = [[], [], []];
    for (let round = 0; round <= ROUNDS; round++) {
      const times = [await pass(open, call(method, ...params)), await pass(keyed, call(method, ...params))];
      if (round === 0) continue;
      without.push(times[0]);
      withKey.push(times[1]);
      ratios.push(times[1] / times[0]);
    }
    const micros = (times) => `${median(times).toFixed(1)} us`;
    console.log(`${method}: ${micros(without)}, with keys ${micros(withKey)}, ratio ${median(ratios).toFixed(2)}`);
  }
  control.close();
} finally {
  await processes.end();
}
