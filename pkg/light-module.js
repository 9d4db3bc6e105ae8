// The light client's module on this thread: a page's, or a worker's.
import { clientsOf } from './connect.js';
import { instantiate } from './dist/rootlight.js';
import { load as bring, once } from './load.js';

/** Loads the WebAssembly module. `createProvider` calls it if needed. */
export const load = once((source) => bring(new URL('./dist/rootlight_bg.wasm', import.meta.url), source));

/** Opens a light client. */
export const openClient = clientsOf(load, instantiate);
