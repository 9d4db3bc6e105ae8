// The configuration that README shows, as it is written there. What the environment says replaces the URL, so that tests can
// use another port.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { subtask } = require('hardhat/config');
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require('hardhat/builtin-tasks/task-names');
const solc = require('solc/package.json');
require('@nomicfoundation/hardhat-chai-matchers');
require('@nomicfoundation/hardhat-ethers');

// Hardhat downloads compilers; this project takes the one of the npm package solc.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }, _, runSuper) => {
  if (solcVersion !== solc.version) return runSuper();
  const compilerPath = require.resolve('solc/soljson.js');
  return { compilerPath, isSolcJs: true, version: solcVersion, longVersion: solcVersion };
});

const readme = readFileSync(join(__dirname, '../../../README.md'), 'utf8');
const [, text] = /```js\n(\/\/ hardhat\.config\.js.*?)```/s.exec(readme);
new Function('require', 'module', text)(require, module);
const config = module.exports;
config.solidity.version = solc.version;
config.networks.rskRegtest.url = process.env.RSK_REGTEST_RPC_URL || config.networks.rskRegtest.url;
