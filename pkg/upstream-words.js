// Error texts about an upstream: the cause, and what to do. The module puts the upstream's name before them, which has only scheme, host and
// port of its address. docs/errors.md lists the same texts, and the native program has them in native/upstream/src/words.rs.
import { failure } from './life.js';
import { INVALID_REQUEST } from './message.js';

/** The host's name does not resolve. */
const NO_HOST = 'there is no such host: check the address, and whether this machine is online';

/** Texts for the causes that Node.js names, by error code. */
const CAUSES = {
  ECONNREFUSED: 'no program listens there: start the node, or check its address',
  ENOTFOUND: NO_HOST,
  EAI_AGAIN: NO_HOST,
};

/** Advice for some HTTP statuses. */
const STATUSES = {
  401: 'check the key in its address',
  403: 'check the key in its address, or allow this client there',
  404: 'check the path of its address',
};

/** The time limit of an exchange is over. */
export const TIME_OVER = 'the time limit is over: ask again later, or add another upstream';

/** The response is something else than JSON-RPC. */
export const NOT_JSON_RPC = 'not a JSON-RPC response; check that the address is that of a node';

/** A WebSocket does not say why it is not opened. */
export const NO_CONNECTION = 'no connection: start the node, or check its address';

/** Says why an exchange with an upstream failed; takes the error of a transport. */
export function unreachable(error) {
  const { message: text = 'unknown failure', name, status, cause } = error ?? {};
  if (status !== undefined) return `HTTP status ${status}: ${STATUSES[status] ?? 'ask again later, or add another upstream'}`;
  if (name === 'TimeoutError') return TIME_OVER;
  if (CAUSES[cause?.code]) return CAUSES[cause.code];
  // On a page: browsers do not say why a request failed.
  if (name === 'TypeError' && globalThis.location) {
    return `not reached: start the node, check its address, or allow pages of ${globalThis.location.origin} there (CORS)`;
  }
  return name === 'TypeError' && cause?.message ? `${cause.message}: start the node, or check its address` : text;
}

/**
 * Refuses a host without a scheme: `example.org/rpc` would be read as a path of the page, and `localhost:4444` as an address with the scheme
 * `localhost`. A path of the page is accepted if it begins with a slash or a dot.
 * @param {unknown} given
 */
export function checkScheme(given) {
  const text = String(given).trim();
  if (/^(?:(?:https?|wss?):|[/.])/i.test(text) || !/^[\w.-]+(?::\d+)?(?:[/?#]|$)/.test(text)) return;
  // The part after the host may be a key.
  const host = text.split(/[/?#]/)[0].slice(0, 60);
  throw failure(INVALID_REQUEST, `upstream: the address has no scheme: write http://${host} or https://${host}`);
}

/**
 * Finds upstreams of another network; undefined if there are none.
 * @param {string} expected the chain id of the followed network, as eth_chainId gives it
 * @param {{name: string, ask: () => Promise<string | undefined>}[]} upstreams `ask` requests the chain id of one
 * @returns {Promise<{words: string, isAll: boolean} | undefined>} `words` names the upstreams with both chain ids, and says what to do; `isAll` if
 * no upstream states the followed network's id
 */
export async function foreignNetworks(expected, upstreams) {
  const stated = await Promise.all(upstreams.map(async ({ name, ask }) => ({ name, id: await ask().catch(() => undefined) })));
  const answered = stated.filter(({ id }) => /^0x[\da-f]{1,16}$/.test(id));
  const foreign = answered.filter(({ id }) => BigInt(id) !== BigInt(expected));
  if (foreign.length === 0) return undefined;
  const words = foreign.map(({ name, id }) => `${name}: it is of the network with chain id ${BigInt(id)}, not ${BigInt(expected)}`);
  return { words: `${words.join('; ')}: use an upstream of the expected network, or select the network of the upstream`, isAll: foreign.length === answered.length };
}
