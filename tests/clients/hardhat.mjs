// Runs the tests of a Hardhat project, named on the command line, on Hardhat's own network, then on the development chain, and then
// on forks of that chain. With `package` after the project, the program is the package's, which keeps nothing on disk.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startChain } from './chain.mjs';
import { onFork, twiceOnFork } from './fork.mjs';

const cwd = new URL(`${process.argv[2]}/`, import.meta.url);
const network = ['--network', 'rskRegtest'];
const onChain = process.argv[2] === 'hardhat2' ? [...network, 'test'] : ['test', ...network];

async function hardhat(args, url) {
  const env = { ...process.env, RSK_REGTEST_RPC_URL: url };
  const child = spawn(process.execPath, ['node_modules/.bin/hardhat', ...args], { cwd, env, stdio: 'inherit' });
  const [status] = await once(child, 'exit');
  if (status !== 0) throw new Error(`hardhat ${args.join(' ')} at ${url} ended with ${status}`);
}

await hardhat(['test'], '');
const chain = await startChain();
try {
  await hardhat(onChain, chain.url);
  const onForks = process.argv[3] === 'package' ? onFork : twiceOnFork;
  await onForks(chain, (url) => hardhat(onChain, url));
} finally {
  await chain.stop();
}
