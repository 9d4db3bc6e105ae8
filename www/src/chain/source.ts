// Where the data comes from: the server that this page came from, or a development chain in this tab.
import type { ChainProvider } from '../../../pkg/dev.js';
import type { Provider, ProviderOptions, SyncProgress, Transport } from '../../../pkg/index.js';
import { quantity } from '../bytes.ts';
import { serverKey } from './key.ts';
import { networkOf } from './networks.ts';
import { synchronizing, Trouble, troubleOf } from './trouble.ts';
import { tokenDeployment } from '../contracts/samples.ts';
import { callData } from '../contracts/abi.ts';
import { claim, type Exchange, overChain, overTransport } from './upstream.ts';

/** An untrusted source of data, and how a light client starts on it. */
export interface Source {
  readonly kind: 'server' | 'tab';
  /** The upstream's name, as the page writes it. */
  readonly name: string;
  readonly chainId: number;
  readonly exchange: Exchange;
  /** The development chain of this tab, if the source is one. */
  readonly chain?: ChainProvider;
  /** A token on the chain, to begin with. */
  readonly token?: string;
  /** An account to begin with. */
  readonly account?: string;
  /** What the light client trusts, in words. */
  readonly trusts: string;
  readonly start: (transports: readonly Transport[], more?: Partial<ProviderOptions>) => Promise<Provider>;
}

/** The contract that holds the bitcoins of Rootstock's two-way peg: an account that every Rootstock network has. */
const BRIDGE = '0x0000000000000000000000000000000001000006';

/** The server's address: this page's own folder, and the key if there is one. */
export const serverAddress = (): URL => new URL(`./${encodeURIComponent(serverKey())}`, new URL(location.pathname, location.origin));

/** Milliseconds after which a light client of a development chain gives up: such chains are short. */
const PATIENCE = 10_000;

/** Options that differ by network. A light client of a development chain begins at the block 0 that its upstreams show. */
function settings(chainId: number): [Pick<ProviderOptions, 'network'> & Partial<ProviderOptions>, string] {
  const network = networkOf(chainId)?.option;
  if (!network) throw new Trouble('network', String(chainId));
  if (network === 'mainnet') {
    return [{ network, pollSeconds: 10 }, 'the heaviest chain of the last two days, by Bitcoin’s proof of work alone'];
  }
  if (network !== 'regtest') return [{ network, pollSeconds: 10 }, 'the newest block that is built into this program'];
  return [{ network, pollSeconds: 0.5, store: null, timeout: PATIENCE }, 'block 0 of this development chain, as the node shows it'];
}

/** Milliseconds that a server may take for its first answers. */
const FIRST = 10_000;

/** The server that this page came from; a {@link Trouble} if it gives no chain that can be proven. */
export async function serverSource(): Promise<Source> {
  if (!/^https?:$/.test(location.protocol)) throw new Trouble('absent', 'the page is a file');
  const { createProvider, httpTransport } = await import('../../../pkg/index.js');
  const exchange = overTransport(httpTransport(serverAddress(), { timeout: FIRST }));
  const ask = (method: string) => claim(exchange, method);
  const answer = await ask('eth_chainId').catch((error) => { throw troubleOf(error); });
  const chainId = Number(answer);
  if (!networkOf(chainId)) throw new Trouble('network', String(answer).slice(0, 40));
  const progress = await synchronizing(ask);
  if (progress) throw new Trouble('syncing', 'the server synchronizes', progress);
  const [options, trusts] = settings(chainId);
  const accounts = await ask('eth_accounts').catch(() => []);
  const start: Source['start'] = (transports, more) => createProvider({ ...options, upstreams: transports, ...more });
  return { kind: 'server', name: location.host, chainId, exchange, trusts, start, account: Array.isArray(accounts) && typeof accounts[0] === 'string' ? accounts[0] : BRIDGE };
}

/** Fills a new chain with some things to look at. Returns the token. */
async function furnish(chain: ChainProvider): Promise<{ account: string; token: string }> {
  const ask = (method: string, ...params: unknown[]) => chain.request({ method, params });
  const [first = '', second = '', third = ''] = (await ask('eth_accounts')) as string[];
  const send = async (transaction: object) => {
    const hash = await ask('eth_sendTransaction', { from: first, gas: quantity(1_000_000), ...transaction });
    return (await ask('eth_getTransactionReceipt', hash)) as { contractAddress: string };
  };
  const { contractAddress: token } = await send({ data: tokenDeployment('Rootlight Demo', 'DEMO') });
  const pay = (to: string, whole: number) => callData('transfer(address,uint256)', [to, `${BigInt(whole) * 10n ** 18n}`]);
  await send({ to: second, value: quantity(21n * 10n ** 17n) });
  await send({ to: token, data: pay(second, 250) });
  await send({ to: token, data: pay(third, 42) });
  await send({ from: second, to: third, value: quantity(5n * 10n ** 17n) });
  return { account: second, token };
}

/** A development chain in this tab, with a light client beside it that does not trust it. */
export async function tabSource(): Promise<Source> {
  const { createDevChain, createProvider } = await import('../../../pkg/dev.js');
  // On this thread if the browser starts no worker.
  const chain = await createDevChain({ blockTime: 0, worker: 'dedicated' }).catch(() => createDevChain({ blockTime: 0 }));
  const things = await furnish(chain);
  const exchange = overChain(chain);
  const [options, trusts] = settings(33);
  const start: Source['start'] = (transports, more) => createProvider({ ...options, upstreams: transports, ...more });
  return { kind: 'tab', name: 'the chain in this tab', chainId: 33, exchange, chain, trusts, start, ...things };
}

export const progressOf = (progress: SyncProgress): number => {
  const all = progress.highestBlock - progress.startingBlock;
  return all <= 0 ? 0 : Math.min(1, (progress.currentBlock - progress.startingBlock) / all);
};
