// Whether the upstreams still serve the chain that the client follows. A development chain begins anew with its program, or goes back
// to an earlier block; a server may turn to another network. Such a chain never links to the verified one, and may be shorter.
import { isBytes } from './message.js';
import { foreignNetworks } from './upstream-words.js';

/** Milliseconds between two looks. */
const LOOK = 2_000;

/** Looks at one head after which upstreams that seem to be well are asked, too: a block of a public network takes half a minute. */
const QUIET = 30;

/**
 * Looks in a row at which no upstream has the verified head. At one, the upstreams may just have moved to a heavier branch, which the
 * module follows.
 */
const ODD = 2;

export const CHAIN_ID = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

const blockAt = (number) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: [number, false] });

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis).unref?.());

/** The result in what an exchange gives; undefined if the upstream did not respond with one. */
async function resultOf(exchange, body) {
  const given = await exchange(body, false);
  if (!isBytes(given)) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(given)).result;
  } catch {
    return undefined;
  }
}

/** Upstreams by name, as {@link foreignNetworks} asks for the chain ids of theirs. */
export const tellers = (exchanges, names) => exchanges.map((exchange, index) => ({ name: names[index], ask: () => resultOf(exchange, CHAIN_ID) }));

/** Whether all upstreams that answer have another block at the verified head, or none. One that does not answer says nothing. */
async function isGone(exchanges, { blockNumber, blockHash }) {
  const shown = await Promise.all(exchanges.map((exchange) => resultOf(exchange, blockAt(blockNumber))));
  const blocks = shown.filter((block) => block === null || typeof block?.hash === 'string');
  return blocks.length > 0 && blocks.every((block) => block?.hash.toLowerCase() !== blockHash);
}

/**
 * Looks at the upstreams until the client ends.
 * @param {object} watched
 * @param {ReturnType<typeof import('./life.js').newLife>} watched.life
 * @param {((body: string, following: boolean) => Promise<unknown>)[]} watched.exchanges
 * @param {string[]} watched.names
 * @param {(method: string, ...params: unknown[]) => Promise<any>} watched.own asks the client itself
 * @param {boolean} watched.isDev whether the client starts at the block 0 that its upstreams show
 * @param {(reason?: string) => void} watched.tell told why no upstream is of use, and nothing once one is again
 * @param {() => Promise<void>} watched.begin begins anew with the upstreams' chain
 */
export async function watchChain({ life, exchanges, names, own, isDev, tell, begin }) {
  const expected = await own('eth_chainId');
  let [former, looks, odd, told] = [undefined, 0, 0, false];
  /** Whether all upstreams that answer are of another network, which is told. */
  const isForeign = async () => {
    const found = await foreignNetworks(expected, tellers(exchanges, names));
    const words = found?.isAll ? found.words : undefined;
    if (words || told) tell(words);
    told = words !== undefined;
    return told;
  };
  for (;;) {
    await life.run(() => pause(LOOK), true);
    const [head, reports] = await Promise.all([own('rootlight_verification', 'latest'), own('rootlight_upstreams')]);
    looks = head && head.blockHash === former ? looks + 1 : 0;
    former = head?.blockHash;
    // Upstreams that failed are asked less and less often.
    const isRested = (looks & (looks - 1)) === 0 && reports?.every(({ resting }) => resting !== null);
    const isDue = looks === 0 ? told : isDev || isRested || looks % QUIET === 0;
    const isOdd = isDue && !(await isForeign()) && isDev && looks > 0 && (await isGone(exchanges, head));
    odd = isOdd ? odd + 1 : 0;
    if (odd < ODD) continue;
    odd = 0;
    await begin().catch(() => {});
  }
}
