// RainbowKit with a wallet that proves: the provider is announced to the page (EIP-6963), so that RainbowKit offers it. Accounts are
// those of the user's wallet; the balance is proven in the page.
// The node and the network are in the page's address: /?node=http://127.0.0.1:4444&network=regtest
import '@rainbow-me/rainbowkit/styles.css';
import { ConnectButton, RainbowKitProvider } from '@rainbow-me/rainbowkit';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import { announce, createProvider } from 'rootlight';
import { custom, defineChain, formatEther } from 'viem';
import { rootstock, rootstockTestnet } from 'viem/chains';
import { createConfig, useAccount, useBalance, WagmiProvider } from 'wagmi';

const query = new URLSearchParams(location.search);
const network = query.get('network') ?? 'mainnet';
const node = query.get('node') ?? 'https://public-node.rsk.co';

const currency = { name: 'Smart Bitcoin', symbol: 'RBTC', decimals: 18 };
const regtest = defineChain({ id: 33, name: 'Rootstock Regtest', nativeCurrency: currency, rpcUrls: { default: { http: [node] } } });
const chain = { mainnet: rootstock, testnet: rootstockTestnet, regtest }[network];

const provider = await createProvider({
  network,
  upstreams: node,
  signer: window.ethereum,
});
announce(provider, {
  name: 'Rootlight',
  icon: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle cx=".5" cy=".5" r=".5" fill="green"/></svg>',
  rdns: 'org.example.rootlight',
});

const config = createConfig({ chains: [chain], transports: { [chain.id]: custom(provider) } });

function Balance() {
  const { address } = useAccount();
  const { data, error } = useBalance({ address });
  if (error) return <p id="balance">{error.message}</p>;
  return <p id="balance">{data ? `${formatEther(data.value)} RBTC` : ''}</p>;
}

createRoot(document.getElementById('app')).render(
  <WagmiProvider config={config}>
    <QueryClientProvider client={new QueryClient()}>
      <RainbowKitProvider>
        <ConnectButton />
        <Balance />
      </RainbowKitProvider>
    </QueryClientProvider>
  </WagmiProvider>,
);
