// A page that reads the balance of the user's account with wagmi. The account is the wallet's; the balance is proven in the page.
// The node and the network are in the page's address: /?node=http://127.0.0.1:4444&network=regtest
import { connect, createConfig, getBalance, getConnection, getConnectors } from '@wagmi/core';
import { announce, createProvider } from 'rootlight';
import { custom, defineChain, formatEther } from 'viem';
import { rootstock, rootstockTestnet } from 'viem/chains';

const query = new URLSearchParams(location.search);
const network = query.get('network') ?? 'mainnet';
const node = query.get('node') ?? 'https://public-node.rsk.co';

const currency = { name: 'Smart Bitcoin', symbol: 'RBTC', decimals: 18 };
const regtest = defineChain({ id: 33, name: 'Rootstock Regtest', nativeCurrency: currency, rpcUrls: { default: { http: [node] } } });
const chain = { mainnet: rootstock, testnet: rootstockTestnet, regtest }[network];

const show = (id, text) => (document.getElementById(id).textContent = text);

const provider = await createProvider({
  network,
  upstreams: node,
  signer: window.ethereum,
  onProgress: ({ currentBlock, highestBlock }) => show('status', `Verifying block ${currentBlock} of ${highestBlock}`),
});
provider.on('verification', ({ method, level, depth, caught }) => {
  if (method === 'eth_getBalance') show('proof', `${level}, ${depth} blocks on top`);
  for (const { upstream, rule } of caught) show('status', `${upstream} lies: ${rule}`);
});
announce(provider, {
  name: 'Rootlight',
  icon: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle cx=".5" cy=".5" r=".5" fill="green"/></svg>',
  rdns: 'org.example.rootlight',
});

const config = createConfig({ chains: [chain], transports: { [chain.id]: custom(provider) } });
const connector = getConnectors(config).find(({ id }) => id === 'org.example.rootlight');
show('status', `Connected to ${chain.name}`);

const button = document.getElementById('connect');
button.disabled = false;
button.addEventListener('click', async () => {
  try {
    // A wallet that knows this site is connected already.
    const address = getConnection(config).address ?? (await connect(config, { connector })).accounts[0];
    const { value } = await getBalance(config, { address });
    show('balance', `${formatEther(value)} RBTC`);
  } catch (error) {
    show('status', error.message);
  }
});
