// A development chain in this tab as a source of data.
import { type ChainProvider, createDevChain, createProvider, type DevChainOptions } from '../../../pkg/dev.js';
import { quantity } from '../bytes.ts';
import { callData } from '../contracts/abi.ts';
import { tokenDeployment } from '../contracts/samples.ts';
import { settings, type Source } from './source.ts';
import { overChain } from './upstream.ts';

/** The chain id of development chains. */
const CHAIN_ID = 33;

/** Fills a new chain with a token and some payments, as examples. Returns the token and an account that has some of it. */
async function furnish(chain: ChainProvider): Promise<{ account: string; token: string }> {
  const ask = (method: string, ...params: unknown[]) => chain.request({ method, params });
  const [first = '', second = '', third = ''] = (await ask('eth_accounts')) as string[];
  // The gas is enough for each of these, so that none has to be estimated.
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

/** Starts a chain in a worker, or on this thread if the browser starts no worker: the package's error has no code then. */
const started = (options: DevChainOptions): Promise<ChainProvider> =>
  createDevChain({ ...options, worker: 'dedicated' }).catch((error: { code?: unknown }) => (error.code === undefined ? createDevChain(options) : Promise.reject(error)));

/** A development chain in this tab that begins on a trusted block of a node. */
export const forkOf = (url: URL, block: { number: number; hash: string }, unproven: 'refuse' | 'trust'): Promise<ChainProvider> => started({ blockTime: 0, fork: { url, block, unproven } });

/** A development chain in this tab, with a light client beside it that does not trust it. */
export async function tabSource(): Promise<Source> {
  const chain = await started({ blockTime: 0 });
  const examples = await furnish(chain);
  const exchange = overChain(chain);
  const [options, trusts] = settings(CHAIN_ID);
  const start: Source['start'] = (transports, more) => createProvider({ ...options, upstreams: transports, ...more });
  return { kind: 'tab', name: 'the chain in this tab', chainId: CHAIN_ID, exchange, chain, trusts, start, served: [], ...examples };
}
