// Rootlight: a Rootstock light client as an EIP-1193 provider. The WebAssembly module verifies answers against proof
// of work; this file connects it to the network.
import { load, openClient } from './light-module.js';
import { placed } from './placement.js';
import { provide } from './provider.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { announce } from './announce.js';
export { httpTransport, load, webSocketTransport };

/** Not written as part of `new URL`, where bundlers would copy the file once more. */
const here = import.meta.url;

/** The worker's file. Bundlers recognise exactly this form of both constructors. */
const workers = {
  shared: () => new SharedWorker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'rootlight-0.1.0' }),
  dedicated: () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }),
  address: () => new URL('./worker.js', here),
};

/**
 * Verifies the chain from a checkpoint to the upstream's head, then returns a provider that answers from it.
 * @param {import('./index.js').ProviderOptions} options
 */
export const createProvider = (options) => provide(placed(openClient, workers), options);

/** @deprecated The former name of `createProvider`. */
export { createProvider as connect };
