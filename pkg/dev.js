// A complete Rootstock development chain as an EIP-1193 provider. It needs no node and no network. The module
// contains the light client too, so that a page that uses both loads one module.
import { instantiate } from './dist/rootlight_dev.js';
import { clientsOf } from './connect.js';
import { instance } from './instance.js';
import { load as bring, once } from './load.js';
import { withOptions } from './message.js';
import { provide, provideChain } from './provider.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { announce } from './announce.js';
export { httpTransport, webSocketTransport };

/** Loads the WebAssembly module. `createDevChain` and `createProvider` call it if needed. */
export const load = once((source) => bring(new URL('./dist/rootlight_dev_bg.wasm', import.meta.url), source));

/** As `createProvider` in index.js. */
export const createProvider = (options) => provide(clientsOf(load, instantiate), options);

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
export const createDevChain = ({ signal, timeout, ...options } = {}) =>
  provideChain(openChain, options, { interval: LOOK, signal, timeout });

/** @type {import('./provider.js').Open} */
async function openChain(life, options) {
  const { module, balance, blockTime, genesis, ...rest } = options;
  const { DevChain } = await instance(instantiate, await load(module), life);
  const allocation = genesis && typeof genesis === 'object' ? JSON.stringify(genesis) : genesis;
  const config = JSON.stringify({ ...rest, balance: text(balance), blockTime: text(blockTime), genesis: allocation });
  const secret = crypto.getRandomValues(new Uint8Array(SECRET));
  let chain = await life.run(() => withOptions(() => new DevChain(config, secret)));
  life.onEnd(() => {
    // Drops the last reference to the chain, so that its memory can be freed.
    chain.close();
    chain = undefined;
  });
  return {
    send: (message, quiet) => life.run(() => chain.request(message), quiet),
    takeChanged: () => chain?.takeChanged(),
  };
}
