// The address of a name of RNS, proven: `node rns.mjs NAME [NODE [NETWORK [REGISTRY]]]`. The registry names the name's resolver, and
// the resolver the address; both calls are executed here on proven state.
import { createProvider } from 'rootlight';
import { createPublicClient, custom, getAddress, parseAbi, zeroAddress } from 'viem';
import { namehash, normalize } from 'viem/ens';

const REGISTRIES = {
  mainnet: '0xcb868aeabd31e2b66f74e9a55cf064abb31a4ad5',
  testnet: '0x7d284aaac6e925aad802a53c0c69efe3764597b8',
};
const [name, node = 'https://public-node.rsk.co', network = 'mainnet', registry = REGISTRIES[network]] = process.argv.slice(2);

const provider = await createProvider({ network, upstreams: node });
const client = createPublicClient({ transport: custom(provider) });

const hash = namehash(normalize(name));
// Both calls are about the same block.
const blockNumber = await client.getBlockNumber();
const read = (address, signature) =>
  client.readContract({ address, abi: parseAbi([signature]), functionName: signature.match(/function (\w+)/)[1], args: [hash], blockNumber });

const resolver = await read(registry, 'function resolver(bytes32) view returns (address)');
if (resolver === zeroAddress) throw new Error(`${name} has no resolver in block ${blockNumber}`);
const address = await read(resolver, 'function addr(bytes32) view returns (address)');
// Rootstock's wallets write addresses with the checksum of EIP-1191, which contains the chain id.
console.log(`${name} is ${getAddress(address, await client.getChainId())} in block ${blockNumber}`);
provider.close();
