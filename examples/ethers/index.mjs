// A proven balance with ethers, and a new block: `node index.mjs ADDRESS [NODE [NETWORK]]`.
import { BrowserProvider, formatEther } from 'ethers';
import { createProvider } from 'rootlight';

const [address, node = 'https://public-node.rsk.co', network = 'mainnet'] = process.argv.slice(2);

// The node is not trusted: what it cannot prove is an error.
const light = await createProvider({ network, upstreams: node });
const provider = new BrowserProvider(light);
const blockNumber = await provider.getBlockNumber();
const balance = await provider.getBalance(address, blockNumber);
console.log(`${formatEther(balance)} RBTC in block ${blockNumber}`);

// ethers has no name for this: the chain, the depth and the work behind that block.
const { level, depth, origin } = await light.request({ method: 'rootlight_verification', params: [`0x${blockNumber.toString(16)}`] });
console.log(`${level} (${origin}), ${Number(depth)} blocks on top`);

provider.destroy();
light.close();
