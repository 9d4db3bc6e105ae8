// The light client as an EIP-1193 provider, out of whichever module holds it.
import { withEvents } from './events.js';
import { loaded, pagesIn } from './store.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

/** Milliseconds between two looks for what could not be told when the chain changed. */
const LOOK_AGAIN = 10_000;

/** A way to an upstream, and a name by which a quorum tells owners apart. */
function reach(upstream, index) {
  if (typeof upstream === 'function') return { transport: upstream, name: `upstream ${index}` };
  const url = new URL(upstream, globalThis.location?.href);
  const transport = /^wss?:$/.test(url.protocol) ? webSocketTransport(url) : httpTransport(url);
  // Paths may hold API keys.
  return { transport, name: url.origin };
}

/** What the module is told in its own units. */
const settings = ({ pollSeconds, ...rest }, names) => ({ ...rest, names, pollMillis: pollSeconds && Math.round(pollSeconds * 1000) });

/** {@link import('./index.js').SyncProgress} out of the module's figures. */
const told = (onProgress) => (startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft) =>
  onProgress({ startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft: secondsLeft ?? undefined });

/**
 * @param {(module?: unknown) => Promise<unknown>} load loads the module
 * @param {() => {connect(options: string, transports: Function[], kept: Uint8Array[] | undefined, keep: Function, progress?: Function): Promise<unknown>}} client the module's class, once loaded
 * @param {import('./index.js').ConnectOptions} options
 */
export async function connectWith(load, client, options) {
  const { upstream, module, store, ...config } = options;
  await load(module);
  const upstreams = [upstream].flat().map(reach);
  const transports = upstreams.map(({ transport }) => transport);
  const pages = pagesIn(store, config);
  let connected;
  const events = withEvents((call) => connected.request(call), LOOK_AGAIN);
  // The module hands out verified headers as they come, which is when there is something to tell.
  const keep = (first, list) => {
    pages?.save(first, list);
    void events.changed();
  };
  const text = JSON.stringify(settings(config, upstreams.map(({ name }) => name)));
  const progress = config.onProgress && told(config.onProgress);
  const own = transports.filter((_, index) => typeof [upstream].flat()[index] !== 'function');
  try {
    connected = await client().connect(text, transports, await loaded(pages), keep, progress);
  } catch (error) {
    for (const transport of own) transport.close?.();
    throw error;
  }
  transports.forEach((transport, index) => transport.heads?.(() => connected.hint(index)));
  return Object.freeze({
    ...events.provider,
    close: () => {
      connected.close();
      events.close();
      for (const transport of own) transport.close?.();
    },
  });
}
