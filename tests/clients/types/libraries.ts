// Compiled, never run: the package's providers where libraries expect theirs, and wallets where the package expects one.
import { BrowserProvider, type Eip1193Provider as EthersProvider } from 'ethers';
import { createPublicClient, createWalletClient, custom, type EIP1193Provider as ViemProvider } from 'viem';
import { rootstock } from 'viem/chains';
import type { EIP1193Provider as Web3Provider, SupportedProviders, Web3EthExecutionAPI } from 'web3-types';
import { createDevChain } from '../../../pkg/dev.js';
import {
  announce, createProvider, type Eip1193Provider, type Provider, type ProviderInfo, type ProviderRpcError, type RequestArguments, type Signer,
} from '../../../pkg/index.js';

declare const info: ProviderInfo;
const options = { network: 'mainnet', upstreams: 'https://node.example' } as const;

/** The package's providers in libraries. */
export async function provided(): Promise<void> {
  for (const provider of [await createProvider(options), await createDevChain()]) {
    const viem: ViemProvider = provider;
    const ethers: EthersProvider = provider;
    const web3: Web3Provider<Web3EthExecutionAPI> = provider;
    const supported: SupportedProviders<Web3EthExecutionAPI> = provider;
    createPublicClient({ chain: rootstock, transport: custom(provider) });
    createWalletClient({ chain: rootstock, transport: custom(viem) });
    new BrowserProvider(provider);
    announce(provider, info);
    void [ethers, web3, supported];
  }
}

/** Wallets as libraries and pages know them, as `signer` and announced. */
export async function taken(viem: ViemProvider, ethers: EthersProvider, web3: Web3Provider<Web3EthExecutionAPI>, own: Eip1193Provider): Promise<void> {
  for (const signer of [viem, ethers, web3, own]) {
    await createProvider({ ...options, signer });
    announce(signer, info);
    const taken: Signer = signer;
    void taken;
  }
}

/** Calls and events of a provider. */
export async function used(provider: Provider): Promise<string> {
  const watch: RequestArguments = { method: 'wallet_watchAsset', params: { type: 'ERC20', options: { address: '0x12' } } };
  await provider.request(watch);
  await provider.request({ method: 'eth_getBalance', params: ['0x12', 'latest'] as const });
  const unnamed: unknown = await provider.request({ method: 'eth_blockNumber' });
  // @ts-expect-error: a result that is not named has no type.
  const wrong: string = unnamed;
  // @ts-expect-error: there is no such network.
  await createProvider({ network: 'mainet' });
  // @ts-expect-error: a method is a text.
  await provider.request({ method: 1 });
  const level: 'unproven' | 'unproven-absence' | 'wallet' | undefined = (await provider.requestWithLevel(watch)).level;
  provider.on('connect', ({ chainId }) => chainId.toUpperCase());
  provider.on('disconnect', (error: ProviderRpcError) => error.code.toFixed());
  provider.on('accountsChanged', (accounts) => accounts.map((account) => account.toUpperCase()));
  provider.on('verification', ({ evidence, depth }) => [evidence?.blockNumber.toUpperCase(), depth?.toFixed()]);
  provider.on('message', (message) => (message.type === 'eth_subscription' ? message.data.subscription.toUpperCase() : message.type));
  void [wrong, level];
  return provider.request<string>({ method: 'eth_chainId' });
}
