// Facts about each network. Work is real on the main network only, and no text may claim it of another one.
import type { ProviderOptions } from '../../../pkg/index.js';

export interface Network {
  readonly option: ProviderOptions['network'];
  readonly name: string;
  /** The worth of a header's proof of work, in a sentence. */
  readonly work: string;
  /** The same as a short step of a ladder. */
  readonly step: string;
  /** Whether work costs something. */
  readonly isMined: boolean;
}

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

export const networkOf = (chainId: number): Network | undefined => NETWORKS[chainId];

export const networkName = (chainId: number): string => NETWORKS[chainId]?.name ?? `chain ${chainId}`;
