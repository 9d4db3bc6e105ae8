// A complete Rootstock development chain as an EIP-1193 provider: no node, no upstream, nothing leaves the machine.
// The module holds the light client too, so that a page which uses both loads one.
import init, { Client, DevChain } from './dist/rootlight_dev.js';
import { connectWith } from './connect.js';
import { withEvents } from './events.js';
import { load as bring, once } from './load.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

export { httpTransport, webSocketTransport };

/** Loads the WebAssembly module; `startDevChain` and `connect` do it by themselves. */
export const load = once((source) => bring(init, new URL('./dist/rootlight_dev_bg.wasm', import.meta.url), source));

/** As in index.js. */
export const connect = (options) => connectWith(load, () => Client, options);

/** Milliseconds between two looks at a chain that may mine by the clock. */
const LOOK = 200;

const text = (value) => (value === undefined ? undefined : String(value));

/**
 * Starts a chain at its genesis.
 * @param {import('./dev.js').DevChainOptions} [options]
 */
export async function startDevChain(options = {}) {
  const { module, balance, blockTime, genesis, ...rest } = options;
  await load(module);
  const allocation = genesis && typeof genesis === 'object' ? JSON.stringify(genesis) : genesis;
  const config = { ...rest, balance: text(balance), blockTime: text(blockTime), genesis: allocation };
  const chain = DevChain.start(JSON.stringify(config));
  // A promise even where the answer is there at once: what is thrown becomes a rejection.
  const events = withEvents(async (call) => chain.request(call), LOOK);
  return Object.freeze({
    ...events.provider,
    close: () => {
      chain.close();
      events.close();
    },
  });
}
