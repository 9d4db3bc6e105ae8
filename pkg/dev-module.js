// The WebAssembly module of the development chain and the light client, for this thread: that of a page (dev.js), of a worker (dev-worker.js)
// or of the program (bin).
import { clientsOf } from './connect.js';
import { instantiate } from './dist/rootlight_dev.js';
import { forked, inTurn } from './forked.js';
import { instance } from './instance.js';
import { load as loadFrom, once } from './load.js';
import { failure } from './life.js';
import { INVALID_REQUEST, withOptions } from './message.js';

/** Loads the WebAssembly module. `createDevChain` and `createProvider` call it if needed. */
export const load = once((source) => loadFrom(new URL('./dist/rootlight_dev_bg.wasm', import.meta.url), source));

/** Opens a light client. */
export const openClient = clientsOf(load, instantiate);

/** Bytes of randomness from which the chain derives its random keys and ids. */
const SECRET_BYTES = 32;

/** Throws the error that {@link withOptions} makes of a reason: for a promise of the module that is rejected. */
const rethrow = (reason) =>
  withOptions(() => {
    throw reason;
  });

/** An option that the module reads as text. */
const text = (value) => (value === undefined ? undefined : String(value));

/** Refuses a mnemonic whose number of words is none of BIP-39's: with a word too few it would derive other accounts. */
function checkMnemonic(mnemonic) {
  const count = String(mnemonic).split(/\s+/).filter(Boolean).length;
  if (![12, 15, 18, 21, 24].includes(count)) throw failure(INVALID_REQUEST, `mnemonic: this has ${count} words, a mnemonic has 12, 15, 18, 21 or 24`);
}

/**
 * Opens a development chain.
 * @type {import('./provider.js').Open}
 */
export async function openChain(life, options) {
  const { module, balance, blockTime, genesis, fork, ...rest } = options;
  if (options.mnemonic !== undefined) checkMnemonic(options.mnemonic);
  const { DevChain, methods, takeChanged } = await instance(instantiate, await load(module), life);
  const allocation = genesis && typeof genesis === 'object' ? JSON.stringify(genesis) : genesis;
  const config = { ...rest, balance: text(balance), blockTime: text(blockTime), genesis: allocation };
  const secret = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  const begin = () => (fork ? forked(DevChain, life, fork, config, secret).catch(rethrow) : withOptions(() => new DevChain(config, secret)));
  let chain = await life.run(begin);
  // A fork may have to fetch data in the middle of a message, and the next one must not run meanwhile.
  const turn = inTurn();
  life.onEnd(() => {
    // Drops the last reference to the chain, so that its memory can be freed.
    chain.close();
    chain = undefined;
  });
  return {
    methods: JSON.parse(methods()),
    send: (message, quiet, method, onFilter, caller) =>
      life.now(() => turn(() => (caller ? chain?.requestFrom(...caller, message, onFilter) : chain?.request(message, onFilter))), quiet),
    /** The accounts whose keys the chain holds at its start: of each the 20 bytes of its address and the 32 of its key. */
    keys: () => chain.keys(),
    takeChanged,
  };
}
