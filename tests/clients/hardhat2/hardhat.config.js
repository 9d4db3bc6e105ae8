// Networks are named as in Rootstock's starter kits.
const { subtask } = require('hardhat/config');
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require('hardhat/builtin-tasks/task-names');
const solc = require('solc/package.json');
require('@nomicfoundation/hardhat-chai-matchers');
require('@nomicfoundation/hardhat-ethers');

const GAS_PRICE = 60_000_000;
const mnemonic = 'test test test test test test test test test test test junk';
const keys = process.env.PRIVATE_KEY ? [process.env.PRIVATE_KEY] : [];

// Hardhat downloads compilers; this project takes the one of the npm package solc.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }, _, runSuper) => {
  if (solcVersion !== solc.version) return runSuper();
  const compilerPath = require.resolve('solc/soljson.js');
  return { compilerPath, isSolcJs: true, version: solcVersion, longVersion: solcVersion };
});

module.exports = {
  solidity: { version: solc.version, settings: { evmVersion: 'shanghai' } },
  networks: {
    rskMainnet: { url: process.env.RSK_MAINNET_RPC_URL || 'https://public-node.rsk.co', chainId: 30, gasPrice: GAS_PRICE, accounts: keys },
    rskTestnet: { url: process.env.RSK_TESTNET_RPC_URL || 'https://public-node.testnet.rsk.co', chainId: 31, gasPrice: GAS_PRICE, accounts: keys },
    rskRegtest: { url: process.env.RSK_REGTEST_RPC_URL || 'http://127.0.0.1:4444', chainId: 33, gasPrice: GAS_PRICE, accounts: { mnemonic } },
  },
};
