// The light client as an EIP-1193 provider, out of whichever module holds it.
import { loaded, pagesIn } from './store.js';
import { httpTransport } from './transport.js';

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
  const connected = await client().connect(JSON.stringify(config), transport, await loaded(pages), pages?.save);
  return Object.freeze({
    request: (call) => connected.request(call),
    close: () => connected.close(),
  });
}
