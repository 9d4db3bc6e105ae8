// The light client as an EIP-1193 provider. The caller passes the module that contains it.
import { withEvents } from './events.js';
import { exchangeOver } from './exchange.js';
import { instance } from './instance.js';
import { disconnected, limited, newLife } from './life.js';
import { answered, message, withOptions } from './message.js';
import { pagesIn } from './store.js';
import { httpTransport } from './transport.js';
import { webSocketTransport } from './websocket.js';

/** Milliseconds between two polls of subscriptions, for events that could not be emitted when the chain changed. */
const LOOK_AGAIN = 10_000;

/** The address of an upstream. The engine's own error would contain the whole address, with its password and key. */
function address(upstream, index) {
  try {
    return new URL(upstream, globalThis.location?.href);
  } catch {
    throw new TypeError(`upstream ${index} is neither a function nor an address`);
  }
}

/** The transport of an upstream, a name by which a quorum distinguishes owners, and whether this package closes its connections. */
function reach(upstream, index) {
  if (typeof upstream === 'function') return { transport: upstream, name: `upstream ${index}`, own: false };
  const url = address(upstream, index);
  const transport = /^wss?:$/.test(url.protocol) ? webSocketTransport(url) : httpTransport(url);
  // Paths may contain API keys.
  return { transport, name: url.origin, own: true };
}

/** The options of the module as JSON, in its own units. */
const settings = ({ pollSeconds, onProgress, ...rest }, names) =>
  JSON.stringify({ ...rest, names, pollMillis: pollSeconds && Math.round(pollSeconds * 1000) });

/** Converts the module's figures to {@link import('./index.js').SyncProgress}. */
const told = (onProgress) => (startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft) =>
  onProgress({ startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft: secondsLeft ?? undefined });

/**
 * @param {(module?: unknown) => Promise<WebAssembly.Module>} load loads the module
 * @param {(host: object) => {init: Function, Client: Function}} instantiate the module's JavaScript side
 * @param {import('./index.js').ProviderOptions} options
 */
export async function connectWith(load, instantiate, { signal, timeout, ...options }) {
  const life = newLife();
  const unlimited = limited(life, signal, timeout);
  try {
    return await life.run(() => begin(life, load, instantiate, options));
  } catch (error) {
    // Everything that was started ends too.
    life.end(error);
    throw error;
  } finally {
    unlimited();
  }
}

async function begin(life, load, instantiate, { upstream, upstreams = upstream ?? [], module, store, onStoreError, ...config }) {
  const reached = [upstreams].flat().map(reach);
  for (const { own, transport } of reached) if (own) life.onEnd(() => transport.close?.());
  const { Client } = await instance(instantiate, await load(module), life);
  /** The module's client. No reference to it is left after the end, so that its memory can be freed. */
  let client;
  const ask = (call, quiet) => life.run(async () => answered(await client.request(message(call))), quiet);
  const events = withEvents(ask, LOOK_AGAIN, () => client?.takeChanged());
  // A start by work neither reads nor writes headers: otherwise whoever writes to the store would choose the start.
  const kept = config.checkpoint === 'work' ? null : store;
  const pages = pagesIn(kept, config, { onError: onStoreError, onTurn: (first) => client?.keepAgain(first) });
  life.onEnd((reason) => {
    client?.close();
    client = undefined;
    pages?.close();
    events.close(reason);
  });
  // The module passes verified headers as they arrive, which is when there may be events. A start by work stores none and
  // passes empty lists.
  const keep = (first, list) => {
    pages?.save(first, list);
    void events.changed();
  };
  const exchanges = reached.map(({ transport }) => exchangeOver(transport, life, pages?.room));
  const names = reached.map(({ name }) => name);
  const progress = config.onProgress && told(config.onProgress);
  client = withOptions(() => new Client(settings(config, names), exchanges, keep, progress));
  if (pages) {
    await restore(life, () => client, pages);
    prove(life, () => client, pages).catch(() => {});
  }
  await life.run(() => client.start()).catch((reason) => {
    throw typeof reason === 'string' ? disconnected(reason) : reason;
  });
  reached.forEach(({ transport }, index) => transport.heads?.(() => client?.hint(index)));
  return Object.freeze({
    ...events.provider,
    close: () => life.end(disconnected('the provider is closed')),
  });
}

/** Passes the newest stored pages to the module. An invalid page is dropped with those after it. */
async function restore(life, client, pages) {
  let count = await life.run(pages.count);
  for (let failures = 0; ; failures += 1) {
    client().restoring(count);
    const wrong = await given(life, client, pages);
    if (wrong === undefined) {
      if (failures > 0) void pages.save(count, []);
      return client().restored();
    }
    // One invalid page is damage. If there are more, their number is not known, so half of the pages are dropped each time.
    count = failures > 0 ? Math.min(wrong, count >> 1) : wrong;
  }
}

/** Passes pages while the module wants them and they are valid. Returns the number of an invalid one. */
async function given(life, client, pages) {
  for (let index; (index = client().wantedPage()) !== undefined; ) {
    const page = await life.run(() => pages.read(index));
    if (!page || !client().restore(page)) return index;
  }
  return undefined;
}

/** Milliseconds between two steps of proving stored headers: each step takes some time, and the page has other work. */
const PROVING_PAUSE = 20;

/** Proves the remaining stored headers in the background. */
async function prove(life, client, pages) {
  for (let more = true; more; ) {
    await life.run(() => pause(PROVING_PAUSE), true);
    const index = client().wantedPage();
    more = client().prove(index === undefined ? undefined : await life.run(() => pages.read(index), true));
  }
}

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis).unref?.());
