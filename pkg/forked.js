// Opens a development chain on a block of another network (the option `fork`): connects its upstream, and passes the options to the module.
import { settings, upstreamOf } from './connect.js';
import { exchangeOver } from './exchange.js';
import { firstBlock } from './first-block.js';
import { disconnected, failure } from './life.js';
import { checkMembers, INVALID_REQUEST } from './message.js';
import { CHAIN_ID, chainIdRequests } from './renewal.js';
import { checkScheme, foreignNetworks } from './upstream-words.js';

/** The names of networks by chain id. */
const BY_CHAIN_ID = new Map([[30n, 'mainnet'], [31n, 'testnet'], [32n, 'devnet'], [33n, 'regtest']]);

/** The error for a wrong option `fork`. */
const wrong = (reason) => failure(INVALID_REQUEST, `fork: ${reason}`);

/** The number and the hash of the block to begin on, as far as they are given, as a list. */
function blockOf(block) {
  if (block === undefined || block === null) return [];
  if (typeof block === 'object') {
    checkMembers(block, 'fork.block', ['number', 'hash']);
    if (typeof block.number === 'number' && typeof block.hash === 'string') return [block.number, block.hash];
  } else if (typeof block === 'number' || typeof block === 'bigint') {
    return [Number(block)];
  }
  throw wrong('block: give a number, or {number, hash} of a block that you trust');
}

/** The name of the network that an upstream states by its chain id, and that id. */
async function networkOf(exchange, name) {
  const [{ ask }] = chainIdRequests([exchange], [name]);
  const id = await ask();
  if (id === undefined) {
    const given = await exchange(CHAIN_ID, false);
    throw disconnected(`fork: ${name}: ${typeof given === 'string' ? `no response: ${given}` : 'it does not tell its chain id: check that it is a node'}`);
  }
  const network = /^0x[\da-f]{1,16}$/i.test(id) && BY_CHAIN_ID.get(BigInt(id));
  if (!network) throw wrong(`${name}: chain id ${String(id).slice(0, 40)} is of no network that is known here`);
  return [network, id];
}

/** Milliseconds after which the upstream's chain id is requested again. */
const ASK_AGAIN = 2_000;

/**
 * The exchange with an upstream, which fails once the upstream states another chain id: responses of another network would look pruned,
 * reorganised or false.
 */
function ofNetwork(exchange, name, expected) {
  const asked = chainIdRequests([exchange], [name]);
  /** When the upstream last stated the chain id. */
  let checkedAt = performance.now();
  return async (body, following) => {
    if (performance.now() - checkedAt < ASK_AGAIN) return exchange(body, following);
    const [given, foreign] = await Promise.all([exchange(body, following), foreignNetworks(expected, asked)]);
    // Without the name and `: `: the module puts the name before the text.
    if (foreign) return foreign.words.slice(name.length + 2);
    checkedAt = performance.now();
    return given;
  };
}

/**
 * Starts a chain on a block of a network.
 * @param {{onFork: Function}} DevChain the class of the module
 * @param {ReturnType<typeof import('./life.js').newLife>} life
 * @param {import('./dev.js').ForkOptions} fork
 * @param {object} config the other options, as the module takes them
 * @param {Uint8Array} secret random bytes, as the constructor of `DevChain` takes them
 */
export async function forked(DevChain, life, fork, config, secret) {
  if (typeof fork !== 'object') throw wrong('give an object, {url}');
  checkMembers(fork, 'fork', ['url', 'block', 'unproven', 'chainId']);
  const { url, block, unproven, chainId } = fork;
  if (typeof url !== 'string' && typeof url !== 'function' && !(url instanceof URL)) throw wrong('url: give the address of a node of the network');
  checkScheme(url);
  const { transport, name, mask, explain, own } = upstreamOf(url, 0);
  if (own) life.onEnd(() => transport.close?.());
  const exchange = exchangeOver(transport, life, undefined, undefined, mask, explain);
  const [number, hash] = blockOf(block);
  const [network, id] = await life.run(() => networkOf(exchange, name));
  // A development chain has a block 0 of its own, at which the light client starts, unless the caller trusts a block.
  const isShown = network === 'regtest' && hash === undefined;
  const start = isShown ? { checkpoint: await firstBlock([exchange], [name], life), maxAge: 0 } : hash === undefined ? {} : { checkpoint: { number, hash } };
  // The options of the light client that finds the block.
  const source = settings({ network, unproven, ...start }, [name]);
  // A reset of the chain may name this address.
  const address = typeof url === 'function' ? '' : String(url);
  return DevChain.onFork({ ...config, chainId: chainId ?? config.chainId }, secret, source, address, ofNetwork(exchange, name, id), () => {}, number, hash);
}

/** Returns a function that runs work one after the other. While no other work runs, work that returns no promise gives its result at once. */
export function inTurn() {
  let last;
  return (work) => {
    const running = last ? last.then(work) : work();
    if (!(running instanceof Promise)) return running;
    const ended = running.then(() => {}, () => {}).then(() => {
      if (last === ended) last = undefined;
    });
    last = ended;
    return running;
  };
}
