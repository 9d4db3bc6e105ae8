// The light client as an EIP-1193 provider, out of whichever module holds it.
import { withEvents } from './events.js';
import { loaded, pagesIn } from './store.js';
import { httpTransport } from './transport.js';

/** Milliseconds between two looks for what could not be told when the chain changed. */
const LOOK_AGAIN = 10_000;

/**
 * @param {(module?: unknown) => Promise<unknown>} load loads the module
 * @param {() => {connect(options: string, transport: unknown, kept?: Uint8Array[], keep?: Function): Promise<unknown>}} client the module's class, once loaded
 * @param {import('./index.js').ConnectOptions} options
 */
export async function connectWith(load, client, options) {
  const { upstream, module, store, ...config } = options;
  await load(module);
  const transport = typeof upstream === 'function' ? upstream : httpTransport(upstream);
  const pages = pagesIn(store, config);
  let connected;
  const events = withEvents((call) => connected.request(call), LOOK_AGAIN);
  // The module hands out verified headers as they come, which is when there is something to tell.
  const keep = (first, list) => {
    pages?.save(first, list);
    if (connected) void events.changed();
  };
  connected = await client().connect(JSON.stringify(config), transport, await loaded(pages), keep);
  return Object.freeze({
    ...events.provider,
    close: () => {
      connected.close();
      events.close();
    },
  });
}
