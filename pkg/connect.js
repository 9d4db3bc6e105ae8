// The light client as an EIP-1193 provider, out of whichever module holds it.
import { httpTransport } from './transport.js';

/**
 * @param {(module?: unknown) => Promise<unknown>} load loads the module
 * @param {() => {connect(options: string, transport: unknown): Promise<unknown>}} client the module's class, once loaded
 * @param {import('./index.js').ConnectOptions} options
 */
export async function connectWith(load, client, options) {
  const { upstream, module, ...config } = options;
  await load(module);
  const transport = typeof upstream === 'function' ? upstream : httpTransport(upstream);
  const connected = await client().connect(JSON.stringify(config), transport);
  return Object.freeze({
    request: (call) => connected.request(call),
    close: () => connected.close(),
  });
}
