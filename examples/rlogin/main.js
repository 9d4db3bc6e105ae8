// A login by rLogin whose provider proves: rLogin offers it beside its other wallets. Accounts are those of the user's wallet; the
// balance is proven in the page.
// The node and the network are in the page's address: /?node=http://127.0.0.1:4444&network=regtest
import * as rLoginModule from '@rsksmart/rlogin';
import { createProvider } from 'rootlight';

// A module of CommonJS, which bundlers and browsers wrap differently.
const RLogin = [rLoginModule, rLoginModule.default, rLoginModule.default?.default].find((it) => typeof it === 'function');

const query = new URLSearchParams(location.search);
const network = query.get('network') ?? 'mainnet';
const node = query.get('node') ?? 'https://public-node.rsk.co';
const chainId = { mainnet: 30, testnet: 31, regtest: 33 }[network];

const show = (id, text) => (document.getElementById(id).textContent = text);

const light = await createProvider({
  network,
  upstreams: node,
  signer: window.ethereum,
});
light.on('verification', ({ method, level, depth }) => {
  if (method === 'eth_getBalance') show('proof', `${level}, ${depth} blocks on top`);
});

const rLogin = new RLogin({
  supportedChains: [chainId],
  rpcUrls: { [chainId]: node },
  providerOptions: {
    'custom-rootlight': {
      display: { name: 'Rootlight', description: 'Your wallet; what it shows is proven', logo: '' },
      package: light,
      connector: async (provider) => {
        await provider.request({ method: 'eth_requestAccounts' });
        return provider;
      },
    },
  },
});
show('status', 'Ready');

const button = document.getElementById('connect');
button.disabled = false;
button.addEventListener('click', async () => {
  try {
    const { provider } = await rLogin.connect();
    const [account] = await provider.request({ method: 'eth_accounts' });
    const balance = BigInt(await provider.request({ method: 'eth_getBalance', params: [account, 'latest'] }));
    show('status', `Connected as ${account}`);
    show('balance', `${balance} wei`);
  } catch (error) {
    show('status', error.message ?? String(error));
  }
});
