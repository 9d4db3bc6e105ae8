import type { ProviderOptions, Provider } from './index.js';

export { connect, createProvider, httpTransport, webSocketTransport } from './index.js';
export type { Answer, GapMessage, Provider, ProviderMessage, ProviderRpcError, RequestArguments, SubscriptionMessage } from './index.js';

/** As the flags of `rootlight dev`. */
export interface DevChainOptions {
  /** Funded accounts; 10 by default. */
  readonly accounts?: number;
  /** Balance of each in RBTC, decimal; 10000 by default. */
  readonly balance?: number | string;
  /** Words that the accounts are derived from; by default the ones anvil and hardhat use. */
  readonly mnemonic?: string;
  /** `0`, the default, mines one block for each transaction; a number of seconds mines by the clock; `manual` when asked. */
  readonly blockTime?: number | 'manual';
  /** Rules up to and including this network upgrade, `wasabi100` or later; all by default. */
  readonly hardfork?: string;
  /** `regtest` for the reference's own genesis, or an allocation in its format. */
  readonly genesis?: 'regtest' | object;
  /** Blocks below the head whose states are kept; 10,000 by default. */
  readonly history?: number;
  /** Where to get the WebAssembly module from, if not from beside this file. */
  readonly module?: ProviderOptions['module'];
}

/** Starts a development chain (chain id 33) in this page or process. */
export function createDevChain(options?: DevChainOptions): Promise<Provider>;

/** @deprecated The former name of {@link createDevChain}. */
export { createDevChain as startDevChain };

/** Loads the WebAssembly module ahead of time. */
export function load(module?: ProviderOptions['module']): Promise<WebAssembly.Module>;
