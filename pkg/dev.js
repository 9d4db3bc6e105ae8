// A complete Rootstock development chain as an EIP-1193 provider. It needs no node and no network. The module
// contains the light client too, so that a page that uses both loads one module.
import { instantiate } from './dist/rootlight_dev.js';
import { connectWith } from './connect.js';
import { withEvents } from './events.js';
import { instance } from './instance.js';
import { disconnected, newLife } from './life.js';
import { load as bring, once } from './load.js';
import { answered, message, withOptions } from './message.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { httpTransport, webSocketTransport };

/** Loads the WebAssembly module. `createDevChain` and `createProvider` call it if needed. */
export const load = once((source) => bring(new URL('./dist/rootlight_dev_bg.wasm', import.meta.url), source));

/** As `createProvider` in index.js. */
export const createProvider = (options) => connectWith(load, instantiate, options);

/** @deprecated The former names of `createProvider` and `createDevChain`. */
export { createProvider as connect, createDevChain as startDevChain };

/** Milliseconds between two polls of the subscriptions, because the chain may mine by the clock. */
const LOOK = 200;

/** Bytes of randomness from which the chain derives its random keys and ids. */
const SECRET = 32;

const text = (value) => (value === undefined ? undefined : String(value));

/**
 * Starts a chain at its genesis.
 * @param {import('./dev.js').DevChainOptions} [options]
 */
export async function createDevChain(options = {}) {
  const { module, balance, blockTime, genesis, ...rest } = options;
  const life = newLife();
  const { DevChain } = await instance(instantiate, await load(module), life);
  const allocation = genesis && typeof genesis === 'object' ? JSON.stringify(genesis) : genesis;
  const config = JSON.stringify({ ...rest, balance: text(balance), blockTime: text(blockTime), genesis: allocation });
  const secret = crypto.getRandomValues(new Uint8Array(SECRET));
  let chain = await life.run(() => withOptions(() => new DevChain(config, secret)));
  // `life.run` returns a promise even for synchronous work, so that exceptions become rejections.
  const ask = (call, quiet) => life.run(() => answered(chain.request(message(call))), quiet);
  const events = withEvents(ask, LOOK, () => chain?.takeChanged());
  life.onEnd((reason) => {
    // Drops the last reference to the chain, so that its memory can be freed.
    chain.close();
    chain = undefined;
    events.close(reason);
  });
  return Object.freeze({
    ...events.provider,
    close: () => life.end(disconnected('the provider is closed')),
  });
}
