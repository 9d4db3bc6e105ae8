// A proven balance with web3.js: `node index.mjs ADDRESS [NODE [NETWORK]]`.
import { createProvider } from 'rootlight';
import { Web3 } from 'web3';

const [address, node = 'https://public-node.rsk.co', network = 'mainnet'] = process.argv.slice(2);

// The node is not trusted: what it cannot prove is an error.
const provider = await createProvider({ network, upstreams: node });
provider.on('verification', ({ method, level, depth }) => console.log(`${method}: ${level}${depth === null ? '' : `, ${depth} blocks on top`}`));

const { eth, utils } = new Web3(provider);
const block = await eth.getBlockNumber();
const balance = await eth.getBalance(address, block);
console.log(`${utils.fromWei(balance, 'ether')} RBTC in block ${block}`);

// A response does not wait for its event `verification`, so the last event may arrive after its response.
setTimeout(() => provider.close(), 100);
