// The light client of a module that also accepts networks as objects. It is built for tests and measurements, and is not published.
import { connectWith } from '../../connect.js';
import { instantiate } from '../../dist/rootlight_networks.js';
import { load as bring, once } from '../../load.js';

export const load = once((source) => bring(new URL('../../dist/rootlight_networks_bg.wasm', import.meta.url), source));

export const createProvider = (options) => connectWith(load, instantiate, options);
