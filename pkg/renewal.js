// Watches whether the upstreams still serve the chain that the client follows. A development chain begins anew when its program restarts, or is
// reset to an earlier block; a server may be moved to another network. Such a chain never links to the verified one, and may be shorter, so that
// the client alone would wait forever.
import { isBytes } from './message.js';
import { foreignNetworks } from './upstream-words.js';

/** Milliseconds between two checks. */
const CHECK_INTERVAL = 2_000;

/**
 * Number of checks with the same head after which upstreams without failures are asked too: 60 seconds, while a block of a public network
 * takes half a minute.
 */
const QUIET_CHECKS = 30;

/**
 * Number of checks in a row at which no upstream has the verified head, after which the chain counts as gone. After a single one the upstreams
 * may just have moved to a heavier branch, which the module follows.
 */
const CHECKS_WITHOUT_HEAD = 2;

/** The request for the chain id of an upstream. */
export const CHAIN_ID = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

/** The request for the block of a number, without its transactions. */
const blockAt = (number) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: [number, false] });

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis).unref?.());

/** The result of a request to an upstream; undefined if it responded with none. */
async function resultOf(exchange, body) {
  const given = await exchange(body, false);
  if (!isBytes(given)) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(given)).result;
  } catch {
    return undefined;
  }
}

/** The upstreams as {@link foreignNetworks} takes them: each with its name, and a function that requests its chain id. */
export const chainIdRequests = (exchanges, names) => exchanges.map((exchange, index) => ({ name: names[index], ask: () => resultOf(exchange, CHAIN_ID) }));

/** Whether all upstreams that answer have another block at the verified head, or none. Upstreams that do not answer do not count. */
async function isGone(exchanges, { blockNumber, blockHash }) {
  const shown = await Promise.all(exchanges.map((exchange) => resultOf(exchange, blockAt(blockNumber))));
  const blocks = shown.filter((block) => block === null || typeof block?.hash === 'string');
  return blocks.length > 0 && blocks.every((block) => block?.hash.toLowerCase() !== blockHash);
}

/**
 * Watches the upstreams until the client ends.
 * @param {object} watched
 * @param {ReturnType<typeof import('./life.js').newLife>} watched.life
 * @param {((body: string, following: boolean) => Promise<unknown>)[]} watched.exchanges
 * @param {string[]} watched.names
 * @param {(method: string, ...params: unknown[]) => Promise<any>} watched.askClient asks the client, not an upstream; returns the result
 * @param {boolean} watched.startsAtShownBlock whether the client starts at the block 0 that its upstreams show
 * @param {(reason?: string) => void} watched.report called with the reason why no upstream is of use, and without one once an upstream is again
 * @param {() => Promise<void>} watched.beginAnew replaces the client by one that follows the upstreams' chain
 */
export async function watchChain({ life, exchanges, names, askClient, startsAtShownBlock, report, beginAnew }) {
  const expected = await askClient('eth_chainId');
  /** The head at the last check, the number of checks with the same head, those at which it was gone, and whether a reason was reported. */
  let [formerHead, checks, missed, isReported] = [undefined, 0, 0, false];
  /** Whether all upstreams that answer are of another network. Reports a change. */
  const isForeign = async () => {
    const found = await foreignNetworks(expected, chainIdRequests(exchanges, names));
    const words = found?.isAll ? found.words : undefined;
    if (words || isReported) report(words);
    isReported = words !== undefined;
    return isReported;
  };
  for (;;) {
    await life.run(() => pause(CHECK_INTERVAL), true);
    const [head, reports] = await Promise.all([askClient('rootlight_verification', 'latest'), askClient('rootlight_upstreams')]);
    checks = head && head.blockHash === formerHead ? checks + 1 : 0;
    formerHead = head?.blockHash;
    // While all upstreams are paused after failures, they are asked at checks whose number is a power of two: less and less often.
    const isPausedTurn = (checks & (checks - 1)) === 0 && reports?.every(({ resting }) => resting !== null);
    // A new head shows that an upstream is of use; if a reason was reported, that is reported.
    const isDue = checks === 0 ? isReported : startsAtShownBlock || isPausedTurn || checks % QUIET_CHECKS === 0;
    const isHeadGone = isDue && !(await isForeign()) && startsAtShownBlock && checks > 0 && (await isGone(exchanges, head));
    missed = isHeadGone ? missed + 1 : 0;
    if (missed < CHECKS_WITHOUT_HEAD) continue;
    missed = 0;
    // If this fails, the next checks try again.
    await beginAnew().catch(() => {});
  }
}
