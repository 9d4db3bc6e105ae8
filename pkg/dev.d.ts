import type { ChainProvider, ProviderOptions } from './index.js';

export { announce, connect, createProvider, httpTransport, webSocketTransport } from './index.js';
export type {
  Answer, ChainProvider, ConnectInfo, Eip1193Provider, GapMessage, Provider, ProviderEvents, ProviderInfo, ProviderMessage, ProviderOptions,
  ProviderRpcError, RequestArguments, RequestOptions, SubscriptionMessage, VerificationEvent,
  WalletChainMessage,
} from './index.js';

/** The block of another network on which a chain begins. State, blocks, receipts and logs are fetched as they are read, and verified. */
export interface ForkOptions {
  /** A node of the network: an http(s) or ws(s) address, or a transport. Its chain id says which network it is. */
  readonly url: string | URL | ((body: string) => Promise<Uint8Array>);
  /**
   * The block: by default the newest one that a light client verifies; the light client then stops. A block given by its number is linked
   * to that newest block by the hashes of headers; a block given with its hash is trusted.
   */
  readonly block?: number | { readonly number: number; readonly hash: string };
  /** `'trust'` accepts state that the node does not prove. By default, `'refuse'`, a node without `eth_getProof` is refused. */
  readonly unproven?: 'refuse' | 'trust';
  /** Chain id, at most 109; that of the network by default. */
  readonly chainId?: number;
}

/** Options with the meaning of the flags of `rootlight dev`. */
export interface DevChainOptions {
  /** Number of funded accounts; 10 by default. */
  readonly accounts?: number;
  /** Balance of each account in RBTC, decimal; 10000 by default. */
  readonly balance?: number | string;
  /** Mnemonic from which the accounts are derived; by default that of anvil and hardhat. */
  readonly mnemonic?: string;
  /** `0`, the default, mines a block for each transaction; a number of seconds mines by the clock; `manual` mines on request. */
  readonly blockTime?: number | 'manual';
  /** The newest active network upgrade, `wasabi100` or later; all upgrades by default. */
  readonly hardfork?: string;
  /** Chain id, at most 109; 33, or that of the network of `fork`, by default. The Bridge's constants follow it. Not used with `genesis`. */
  readonly chainId?: number;
  /** `regtest` for the regtest genesis of the reference node, or an allocation in its format. */
  readonly genesis?: 'regtest' | object;
  /** Time of block 0, in seconds since 1970; 0 by default, so that the chain is the same each time. Not used with `genesis`. */
  readonly genesisTime?: number;
  /** Begins on a block of another network, by its rules. Not used with `hardfork`, `genesis` and `genesisTime`. */
  readonly fork?: ForkOptions;
  /** Number of blocks below the head whose states are kept; 10,000 by default. */
  readonly history?: number;
  /** Most calls in one batch of a caller, from 1 to 10,000; 1,000 by default. */
  readonly batchLimit?: number;
  /** What `web3_clientVersion` answers; the network helpers of hardhat work only if it begins with `anvil`. */
  readonly clientVersion?: string;
  /** The WebAssembly module, or where to load it from; by default the file of this package. */
  readonly module?: ProviderOptions['module'];
  /**
   * `'dedicated'` runs the chain in a worker of its own, or in a worker thread of Node.js; a function returns a worker that
   * runs `rootlight/dev-worker.js`. By default the chain runs on the thread that calls `createDevChain`.
   */
  readonly worker?: 'dedicated' | false | (() => object | Promise<object>);
  /** Makes `createDevChain` reject with the signal's reason. It has no effect once the chain exists. */
  readonly signal?: AbortSignal;
  /** Most milliseconds that `createDevChain` may take; it rejects with code 4900 then. There is no limit by default. */
  readonly timeout?: number;
}

/**
 * Starts a development chain as an EIP-1193 provider. It holds the keys of its accounts: `eth_requestAccounts`, `eth_sendTransaction` and
 * `personal_sign` work without a wallet. Its chain id is the option `chainId`, by default that of the network of `fork`, otherwise 33.
 */
export function createDevChain(options?: DevChainOptions): Promise<ChainProvider>;

/** @deprecated The former name of {@link createDevChain}. */
export { createDevChain as startDevChain };

/** Loads the WebAssembly module ahead of time. */
export function load(module?: ProviderOptions['module']): Promise<WebAssembly.Module>;
