// The WebAssembly module of the light client, for this thread: that of a page (index.js) or of a worker (worker.js).
import { clientsOf } from './connect.js';
import { instantiate } from './dist/rootlight.js';
import { load as loadFrom, once } from './load.js';

/** Loads the WebAssembly module. `createProvider` calls it if needed. */
export const load = once((source) => loadFrom(new URL('./dist/rootlight_bg.wasm', import.meta.url), source));

/** Opens a light client. */
export const openClient = clientsOf(load, instantiate);
