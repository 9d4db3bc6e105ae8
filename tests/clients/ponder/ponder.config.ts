import { readFileSync } from 'node:fs';
import { createConfig } from 'ponder';
import type { Abi } from 'viem';

const { abi } = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN!, 'utf8')) as { abi: Abi };

export default createConfig({
  database: { kind: 'pglite', directory: process.env.DATABASE_FOLDER! },
  chains: { regtest: { id: 33, rpc: process.env.CHAIN_URL!, pollingInterval: 200 } },
  contracts: {
    Token: {
      chain: 'regtest',
      abi,
      address: process.env.TOKEN_ADDRESS as `0x${string}`,
      startBlock: 1,
      includeCallTraces: true,
      includeTransactionReceipts: true,
    },
  },
});
