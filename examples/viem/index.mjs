// A proven balance with viem: `node index.mjs ADDRESS [NODE [NETWORK]]`.
import { createProvider } from 'rootlight';
import { createPublicClient, custom, formatEther } from 'viem';
import { rootstock, rootstockTestnet } from 'viem/chains';

const [address, node = 'https://public-node.rsk.co', network = 'mainnet'] = process.argv.slice(2);

// The node is not trusted: what it cannot prove is an error.
const provider = await createProvider({ network, upstreams: node });
provider.on('verification', ({ method, level, depth }) => console.log(`${method}: ${level}${depth === null ? '' : `, ${depth} blocks on top`}`));

const chain = { mainnet: rootstock, testnet: rootstockTestnet }[network];
const client = createPublicClient({ chain, transport: custom(provider) });
const blockNumber = await client.getBlockNumber();
const balance = await client.getBalance({ address, blockNumber });
console.log(`${formatEther(balance)} RBTC in block ${blockNumber}`);

// Lets the last event arrive.
setTimeout(() => provider.close(), 100);
