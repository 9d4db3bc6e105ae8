// A complete Rootstock development chain as an EIP-1193 provider. It needs no node and no network. The module
// contains the light client too, so that a page that uses both loads one module.
import { load, openChain, openClient } from './dev-module.js';
import { placed, placedChain } from './placement.js';
import { provide, provideChain } from './provider.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { announce } from './announce.js';
export { httpTransport, load, webSocketTransport };

/** The address of this file. It has a name, because bundlers would copy the worker's file once more for a second `new URL` with `import.meta.url`. */
const ownAddress = import.meta.url;

/** The ways to start the worker, and its address for Node.js. Bundlers recognise its file only in exactly this form of both constructors. */
const workers = {
  shared: () => new SharedWorker(new URL('./dev-worker.js', import.meta.url), { type: 'module', name: 'rootlight-dev-0.1.0' }),
  dedicated: () => new Worker(new URL('./dev-worker.js', import.meta.url), { type: 'module' }),
  address: () => new URL('./dev-worker.js', ownAddress),
};

/** As `createProvider` in index.js. */
export const createProvider = (options) => provide(placed(openClient, workers), options);

/** @deprecated The former names of `createProvider` and `createDevChain`. */
export { createProvider as connect, createDevChain as startDevChain };

/** Milliseconds between two polls of the subscriptions: the chain may mine by the clock, which no answer reports. */
const POLL_INTERVAL = 200;

/**
 * Starts a chain at its genesis, or on a block of another network.
 * @param {import('./dev.js').DevChainOptions} [options]
 */
export const createDevChain = ({ signal, timeout, ...options } = {}) =>
  provideChain(placedChain(openChain, workers), options, { interval: POLL_INTERVAL, signal, timeout });
