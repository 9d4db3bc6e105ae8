// A complete Rootstock development chain as an EIP-1193 provider. It needs no node and no network. The module
// contains the light client too, so that a page that uses both loads one module.
import { load, openChain, openClient } from './dev-module.js';
import { placed, placedChain } from './placement.js';
import { provide, provideChain } from './provider.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { announce } from './announce.js';
export { httpTransport, load, webSocketTransport };

/** Not written as part of `new URL`, where bundlers would copy the file once more. */
const here = import.meta.url;

/** The worker's file. Bundlers recognise exactly this form of both constructors. */
const workers = {
  shared: () => new SharedWorker(new URL('./dev-worker.js', import.meta.url), { type: 'module', name: 'rootlight-dev-0.1.0' }),
  dedicated: () => new Worker(new URL('./dev-worker.js', import.meta.url), { type: 'module' }),
  address: () => new URL('./dev-worker.js', here),
};

/** As `createProvider` in index.js. */
export const createProvider = (options) => provide(placed(openClient, workers), options);

/** @deprecated The former names of `createProvider` and `createDevChain`. */
export { createProvider as connect, createDevChain as startDevChain };

/** Milliseconds between two polls of the subscriptions, because the chain may mine by the clock. */
const LOOK = 200;

/**
 * Starts a chain at its genesis, or on a block of another network.
 * @param {import('./dev.js').DevChainOptions} [options]
 */
export const createDevChain = ({ signal, timeout, ...options } = {}) =>
  provideChain(placedChain(openChain, workers), options, { interval: LOOK, signal, timeout });
