// Block 0 of a development chain. No block of such a chain is known in advance, so that its upstreams show it.
import { disconnected, failure } from './life.js';
import { INVALID_REQUEST, isBytes } from './message.js';
import { NOT_JSON_RPC } from './upstream-words.js';

/** Milliseconds that the other upstreams have once one has shown its block. */
const GRACE = 2_000;

const ASK = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}';

/** Whether a client with these options starts at the block 0 that its upstreams show. */
export const isShown = ({ network, checkpoint }) => network === 'regtest' && (checkpoint === undefined || checkpoint === null);

/** The block that one upstream shows. The error is the reason, in words. */
async function shownBy(exchange) {
  const given = await exchange(ASK, false);
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
 * The checkpoint of a client whose upstreams are a development chain. It is refused if they show different ones.
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
  const others = Promise.any(asked).then(() => new Promise((resolve) => setTimeout(resolve, GRACE).unref?.()), () => {});
  await life.run(() => Promise.race([Promise.allSettled(asked), others]));
  const [first, ...more] = blocks;
  if (!first) throw disconnected(`no upstream shows block 0 of a development chain: ${failures.join('; ')}`);
  const other = more.find(({ hash }) => hash !== first.hash);
  if (other) {
    const shows = ({ name, hash }) => `${name} shows block 0 ${hash}`;
    throw failure(INVALID_REQUEST, `the upstreams are of different chains: ${shows(first)}, ${shows(other)}; give those of one chain, or its block 0 as \`checkpoint\``);
  }
  // Nothing is below block 0, so that its difficulty is the total one.
  return { number: 0, hash: first.hash, totalDifficulty: first.difficulty, shown: true };
}
