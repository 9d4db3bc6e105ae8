// Runs the tests of a Hardhat project, named on the command line, on Hardhat's own network and then on the development
// chain.
import { spawnSync } from 'node:child_process';
import { startChain } from './chain.mjs';

const cwd = new URL(`${process.argv[2]}/`, import.meta.url);

function hardhat(args, url) {
  const env = { ...process.env, RSK_REGTEST_RPC_URL: url };
  const { status, error } = spawnSync(process.execPath, ['node_modules/.bin/hardhat', ...args], { cwd, env, stdio: 'inherit' });
  if (error) throw error;
  return status;
}

let failed = hardhat(['test'], '');
if (failed === 0) {
  const chain = await startChain();
  const network = ['--network', 'rskRegtest'];
  failed = hardhat(process.argv[2] === 'hardhat2' ? [...network, 'test'] : ['test', ...network], chain.url);
  await chain.stop();
}
process.exitCode = failed;
