// Rootlight: a Rootstock light client as an EIP-1193 provider. The WebAssembly module verifies answers against proof
// of work; this file exports what pages use, and says which worker runs the client.
import { load, openClient } from './light-module.js';
import { placed } from './placement.js';
import { provide } from './provider.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { announce } from './announce.js';
export { httpTransport, load, webSocketTransport };

/** The address of this file. It has a name, because bundlers would copy the worker's file once more for a second `new URL` with `import.meta.url`. */
const ownAddress = import.meta.url;

/** The ways to start the worker, and its address for Node.js. Bundlers recognise its file only in exactly this form of both constructors. */
const workers = {
  shared: () => new SharedWorker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'rootlight-0.1.0' }),
  dedicated: () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }),
  address: () => new URL('./worker.js', ownAddress),
};

/**
 * Verifies the chain from a checkpoint to the upstream's head, then returns a provider that answers from it.
 * @param {import('./index.js').ProviderOptions} options
 */
export const createProvider = (options) => provide(placed(openClient, workers), options);

/** @deprecated The former name of `createProvider`. */
export { createProvider as connect };
