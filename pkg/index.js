// Rootlight: a Rootstock light client as an EIP-1193 provider. The WebAssembly module verifies answers against proof
// of work; this file connects it to the network.
import { instantiate } from './dist/rootlight.js';
import { clientsOf } from './connect.js';
import { load as bring, once } from './load.js';
import { provide } from './provider.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { announce } from './announce.js';
export { httpTransport, webSocketTransport };

/** Loads the WebAssembly module. `createProvider` calls it if needed. */
export const load = once((source) => bring(new URL('./dist/rootlight_bg.wasm', import.meta.url), source));

/**
 * Verifies the chain from a checkpoint to the upstream's head, then returns a provider that answers from it.
 * @param {import('./index.js').ProviderOptions} options
 */
export const createProvider = (options) => provide(clientsOf(load, instantiate), options);

/** @deprecated The former name of `createProvider`. */
export { createProvider as connect };
