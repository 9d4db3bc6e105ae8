// Networks are named as in Rootstock's starter kits.
import { createRequire } from 'node:module';

import networkHelpers from '@nomicfoundation/hardhat-network-helpers';
import testRunner from '@nomicfoundation/hardhat-node-test-runner';
import viem from '@nomicfoundation/hardhat-viem';
import viemAssertions from '@nomicfoundation/hardhat-viem-assertions';
import { defineConfig } from 'hardhat/config';

const require = createRequire(import.meta.url);
const accounts = process.env.PRIVATE_KEY ? [process.env.PRIVATE_KEY] : [];
const rootstock = { type: 'http', chainType: 'l1', gasPrice: 60_000_000n };

export default defineConfig({
  plugins: [networkHelpers, testRunner, viem, viemAssertions],
  solidity: {
    version: require('solc/package.json').version,
    // Hardhat downloads compilers unless a path is given; this is the one of the npm package solc.
    path: require.resolve('solc/soljson.js'),
    settings: { evmVersion: 'shanghai' },
  },
  networks: {
    rskMainnet: { ...rootstock, url: process.env.RSK_MAINNET_RPC_URL || 'https://public-node.rsk.co', chainId: 30, accounts },
    rskTestnet: { ...rootstock, url: process.env.RSK_TESTNET_RPC_URL || 'https://public-node.testnet.rsk.co', chainId: 31, accounts },
    rskRegtest: { ...rootstock, url: process.env.RSK_REGTEST_RPC_URL || 'http://127.0.0.1:4444', chainId: 33 },
  },
});
