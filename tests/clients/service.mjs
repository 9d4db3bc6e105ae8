// Runs tests of client libraries against a service on many machines instead of one process: node service.mjs FILE...
import { spawn } from 'node:child_process';
import { call } from './program.mjs';
import { Processes, start } from './service/service.mjs';

const files = process.argv.slice(2);
const [node, python] = ['.mjs', '.py'].map((ending) => files.filter((file) => file.endsWith(ending)));

/** Runs a command; resolves with whether it succeeded. */
function run(program, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code === 0));
  });
}

const processes = new Processes();
let passed = false;
try {
  const started = performance.now();
  const service = await start(processes);
  console.log(`# the service runs after ${((performance.now() - started) / 1000).toFixed(1)} s`);
  const env = { ...process.env, ROOTLIGHT_SERVICE: JSON.stringify(service) };
  // One file at a time: they share one chain and its accounts.
  const tests = ['--test', '--test-reporter=tap', '--test-timeout=120000', '--test-concurrency=1', ...node];
  passed = node.length === 0 || (await run(process.execPath, tests, env));
  for (const file of python) passed = (await run(process.env.PYTHON ?? 'python3', [file, '-v'], env)) && passed;
  console.log(`# the chain has ${Number(await call(service.control, 'eth_blockNumber'))} blocks`);
} finally {
  const logs = passed && !process.env.LOGS ? [] : processes.logs();
  const ended = await processes.end();
  logs.forEach(([name, text]) => console.error(`# ${name}:\n${text.slice(-4000)}`));
  if (ended.length) console.error(`# ended before its time: ${ended.join(', ')}`);
  process.exitCode = passed && !ended.length ? 0 : 1;
}
