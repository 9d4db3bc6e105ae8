// Fetches block 0 of a development chain from the upstreams. Each such chain has a block 0 of its own, so that the client has to trust the one
// that the upstreams show.
import { disconnected, failure } from './life.js';
import { INVALID_REQUEST, isBytes } from './message.js';
import { NOT_JSON_RPC } from './upstream-words.js';

/** Milliseconds that the other upstreams have left to respond once one has shown its block. */
const GRACE = 2_000;

/** The request for block 0. */
const REQUEST = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}';

/** Whether a client with these options starts at the block 0 that its upstreams show. */
export const isShown = ({ network, checkpoint }) => network === 'regtest' && (checkpoint === undefined || checkpoint === null);

/** The block 0 that one upstream shows. The error says why there is none. */
async function shownBy(exchange) {
  const given = await exchange(REQUEST, false);
  if (!isBytes(given)) throw new Error(typeof given === 'number' ? 'it asks for a pause' : given);
  let response;
  try {
    response = JSON.parse(new TextDecoder().decode(given));
  } catch {
    throw new Error(NOT_JSON_RPC);
  }
  const { hash, difficulty } = response?.result ?? {};
  if (!/^0x[\da-f]{64}$/i.test(hash)) throw new Error('it has no block 0: check that it is a development chain');
  return { hash: hash.toLowerCase(), difficulty };
}

/**
 * The checkpoint of a client whose upstreams are nodes of a development chain: the block 0 that they show. Fails if they show different ones.
 * @param {((body: string, following: boolean) => Promise<unknown>)[]} exchanges
 * @param {string[]} names those of the upstreams
 * @param {ReturnType<typeof import('./life.js').newLife>} life
 */
export async function firstBlock(exchanges, names, life) {
  const failures = [];
  const blocks = [];
  const asked = exchanges.map(async (exchange, index) => {
    try {
      blocks.push({ name: names[index], ...(await shownBy(exchange)) });
    } catch (error) {
      failures.push(`${names[index]}: ${error.message}`);
      throw error;
    }
  });
  const isGraceOver = Promise.any(asked).then(() => new Promise((resolve) => setTimeout(resolve, GRACE).unref?.()), () => {});
  await life.run(() => Promise.race([Promise.allSettled(asked), isGraceOver]));
  const [first, ...more] = blocks;
  if (!first) throw disconnected(`no upstream shows block 0 of a development chain: ${failures.join('; ')}`);
  const other = more.find(({ hash }) => hash !== first.hash);
  if (other) {
    const shows = ({ name, hash }) => `${name} shows block 0 ${hash}`;
    throw failure(INVALID_REQUEST, `the upstreams are of different chains: ${shows(first)}, ${shows(other)}; give those of one chain, or its block 0 as \`checkpoint\``);
  }
  // Block 0 has no ancestors, so that its difficulty is the total difficulty. `shown` tells the module that the upstreams chose the block.
  return { number: 0, hash: first.hash, totalDifficulty: first.difficulty, shown: true };
}
