// Facts about each network for the page's texts. Only blocks of the main network need costly work, and no text may claim that of another network.
import type { ProviderOptions } from '../../../pkg/index.js';

/** A network as the page describes it. */
export interface Network {
  /** Its name in the package's option `network`. */
  readonly option: ProviderOptions['network'];
  readonly name: string;
  /** What a header's proof of work costs, in a sentence. */
  readonly work: string;
  /** The same as a step of the ladder from the work to an answer (ladder.ts). */
  readonly step: string;
  /** Whether work costs something. */
  readonly isMined: boolean;
}

/** The networks by chain id. */
const NETWORKS: Readonly<Record<number, Network>> = {
  30: {
    option: 'mainnet', name: 'Rootstock', isMined: true, step: 'Bitcoin miners worked on a header',
    work: 'Bitcoin’s miners put work into each block: making one up costs as much as mining it.',
  },
  31: {
    option: 'testnet', name: 'Rootstock testnet', isMined: false, step: 'Miners of a test network worked on a header',
    work: 'This is a test network: its work is cheap, and its coins are worth nothing.',
  },
  32: {
    option: 'devnet', name: 'Rootstock devnet', isMined: false, step: 'A miner of a private network worked on a header',
    work: 'This is a private network: its work costs nearly nothing.',
  },
  33: {
    option: 'regtest', name: 'development chain', isMined: false, step: 'The node worked on a header by itself',
    work: 'The node makes the work of each block by itself, for nothing. The steps are those of Rootstock, their weight is not.',
  },
};

/** The network of a chain id; `undefined` for a chain id of no network. */
export const networkOf = (chainId: number): Network | undefined => NETWORKS[chainId];

/** The network's name, or the chain id in words. */
export const networkName = (chainId: number): string => NETWORKS[chainId]?.name ?? `chain ${chainId}`;
