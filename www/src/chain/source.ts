// The sources of the page's data: the server that sent this page (here), or a development chain in this tab (tab.ts).
import type { ChainProvider } from '../../../pkg/dev.js';
import { createProvider, httpTransport, type Provider, type ProviderOptions, type SyncProgress, type Transport } from '../../../pkg/index.js';
import { serverKey } from './key.ts';
import { networkOf } from './networks.ts';
import { type Served, servedOf } from './served.ts';
import { synchronizing, Trouble, troubleOf } from './trouble.ts';
import { type Exchange, overTransport, uncheckedAnswers } from './upstream.ts';

/** An untrusted source of data, and how a light client starts on it. */
export interface Source {
  readonly kind: 'server' | 'tab';
  /** The upstream's name, as the page writes it. */
  readonly name: string;
  readonly chainId: number;
  readonly exchange: Exchange;
  /** The development chain of this tab, if the source is one. */
  readonly chain?: ChainProvider;
  /** A token on the chain, as a first example. */
  readonly token?: string;
  /** An account, as a first example. */
  readonly account?: string;
  /** The upstreams of a server that is a light client itself, as its first answer names them. */
  readonly served: readonly Served[];
  /** The block or rule that the light client trusts, in words. */
  readonly trusts: string;
  /** Starts a light client on these transports. */
  readonly start: (transports: readonly Transport[], more?: Partial<ProviderOptions>) => Promise<Provider>;
}

/** The contract that holds the bitcoins of Rootstock's two-way peg: an account that every Rootstock network has. */
const BRIDGE = '0x0000000000000000000000000000000001000006';

/** The server's address: this page's own folder, and the key if there is one. */
export const serverAddress = (): URL => new URL(`./${encodeURIComponent(serverKey())}`, new URL(location.pathname, location.origin));

/** Milliseconds after which a light client of a development chain gives up: such chains are short. */
const START_TIMEOUT = 10_000;

/** The options of a light client on a network, and in words what it trusts. On a development chain it starts at the block 0 that its upstreams show. */
export function settings(chainId: number): [options: Pick<ProviderOptions, 'network'> & Partial<ProviderOptions>, trusts: string] {
  const network = networkOf(chainId)?.option;
  if (!network) throw new Trouble('network', String(chainId));
  if (network === 'mainnet') {
    return [{ network, pollSeconds: 10 }, 'the heaviest chain of the last two days, by Bitcoin’s proof of work alone'];
  }
  if (network !== 'regtest') return [{ network, pollSeconds: 10 }, 'the newest block that is built into this program'];
  return [{ network, pollSeconds: 0.5, store: null, timeout: START_TIMEOUT }, 'block 0 of this development chain, as the node shows it'];
}

/** Milliseconds that a server may take for its first answers. */
const FIRST_TIMEOUT = 10_000;

/** The server that sent this page as a source; throws a {@link Trouble} if it serves no chain that can be proven. */
export async function serverSource(): Promise<Source> {
  if (!/^https?:$/.test(location.protocol)) throw new Trouble('absent', 'the page is a file');
  const exchange = overTransport(httpTransport(serverAddress(), { timeout: FIRST_TIMEOUT }));
  // In one request: over most connections a round trip takes longer than the answers.
  const asked = uncheckedAnswers(exchange, 'eth_chainId', 'rootlight_syncStatus', 'eth_syncing', 'eth_accounts', 'rootlight_upstreams');
  const [answer, syncStatus, syncing, accounts, upstreams] = await asked.catch((error) => { throw troubleOf(error); });
  if (answer === undefined) throw new Trouble('down', 'it does not say which chain it serves');
  const chainId = Number(answer);
  if (!networkOf(chainId)) throw new Trouble('network', String(chainId || answer).slice(0, 40));
  const progress = synchronizing(syncStatus ?? syncing);
  if (progress) throw new Trouble('syncing', 'the server synchronizes', progress);
  const [options, trusts] = settings(chainId);
  const start: Source['start'] = (transports, more) => createProvider({ ...options, upstreams: transports, ...more });
  return { kind: 'server', name: location.host, chainId, exchange, trusts, start, served: servedOf(upstreams), account: Array.isArray(accounts) && typeof accounts[0] === 'string' ? accounts[0] : BRIDGE };
}

/** How far synchronization is, from 0 to 1. */
export const progressOf = (progress: SyncProgress): number => {
  const all = progress.highestBlock - progress.startingBlock;
  return all <= 0 ? 0 : Math.min(1, (progress.currentBlock - progress.startingBlock) / all);
};
