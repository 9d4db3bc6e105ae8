// Rootlight: a Rootstock light client as an EIP-1193 provider. Answers are checked against proof of work in
// WebAssembly; this file only connects it to the network.
import init, { Client } from './dist/rootlight.js';
import { load as bring, once } from './load.js';
import { httpTransport } from './transport.js';

export { httpTransport };

/** Loads the WebAssembly module; `connect` does it by itself. */
export const load = once((source) => bring(init, new URL('./dist/rootlight_bg.wasm', import.meta.url), source));

/**
 * Verifies the chain from a checkpoint to the upstream's head, then answers from it.
 * @param {import('./index.js').ConnectOptions} options
 */
export async function connect(options) {
  const { upstream, module, ...config } = options;
  await load(module);
  const transport = typeof upstream === 'function' ? upstream : httpTransport(upstream);
  const client = await Client.connect(JSON.stringify(config), transport);
  return Object.freeze({
    request: (call) => client.request(call),
    close: () => client.close(),
  });
}
