// Opens a light client on this thread: connects the WebAssembly module, which the caller passes, to its upstreams and to the store of
// verified headers.
import { connection, exchangeOver } from './exchange.js';
import { firstBlock, isShown } from './first-block.js';
import { instance } from './instance.js';
import { disconnected } from './life.js';
import { withOptions } from './message.js';
import { provide } from './provider.js';
import { chainIdRequests, watchChain } from './renewal.js';
import { maskOf, withoutSecrets } from './secrets.js';
import { pagesIn } from './store.js';
import { httpTransport } from './transport.js';
import { foreignNetworks, unreachable } from './upstream-words.js';
import { webSocketTransport } from './websocket.js';

/**
 * How an upstream is reached: its transport; the name by which a quorum distinguishes owners; `mask`, which removes the secrets of its address
 * from texts; `own`, whether this package made the transport and closes it; and `explain`, which puts a failure into words.
 */
export function upstreamOf(upstream, index) {
  if (typeof upstream === 'function') return { transport: upstream, name: `upstream ${index}`, mask: withoutSecrets, own: false };
  const url = new URL(upstream);
  // Paths may contain API keys.
  const common = { name: url.origin, mask: maskOf(url), own: true, explain: unreachable };
  return { ...common, transport: /^wss?:$/.test(url.protocol) ? webSocketTransport(url) : httpTransport(url) };
}

/**
 * The options of a provider as the module takes them (pkg/wasm/src/config.rs), in its units. Objects of the caller are copied, because they
 * may come from another frame or have getters.
 */
export const settings = ({ pollSeconds, network, checkpoint, ...rest }, names) => ({
  ...rest,
  names,
  network: typeof network === 'string' ? network : JSON.stringify(network),
  checkpoint: checkpoint && typeof checkpoint === 'object' ? { ...checkpoint } : checkpoint,
  pollMillis: pollSeconds && Math.round(pollSeconds * 1000),
});

/**
 * Makes a listener for the module's figures, which passes them on as {@link import('./index.js').SyncProgress}. Nothing is passed on before
 * an upstream has announced its newest block.
 */
const progressListener = (onProgress) => (startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft) =>
  highestBlock > 0 && onProgress({ startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft: secondsLeft ?? undefined });

/**
 * A provider whose client runs on this thread.
 * @param {(module?: unknown) => Promise<WebAssembly.Module>} load loads the module
 * @param {(host: object) => {init: Function, Client: Function, methods: () => string}} instantiate the module's JavaScript side
 * @param {import('./index.js').ProviderOptions} options
 */
export const connectWith = (load, instantiate, options) => provide(clientsOf(load, instantiate), options);

/**
 * Returns a function that opens a client on this thread, as {@link provide} takes it.
 * @param {(module?: unknown) => Promise<WebAssembly.Module>} load
 * @param {(host: object) => {init: Function, Client: Function, methods: () => string}} instantiate
 * @returns {import('./provider.js').Open}
 */
export const clientsOf = (load, instantiate) => async (life, options, callbacks) => {
  const { upstreams: given, module, storage, ...config } = options;
  const upstreams = given.map(upstreamOf);
  for (const { own, transport } of upstreams) if (own) life.onEnd(() => transport.close?.());
  /** The module's client. No reference to it is left after the end, so that its memory can be freed. */
  let client;
  /** The stored headers, once the module has said how it starts. */
  let pages;
  /** Resolves after the end, when all pages are written. */
  const closed = new Promise((resolve) => {
    life.onEnd(() => {
      client?.close();
      client = undefined;
      resolve(pages?.close());
    });
  });
  // The module calls this whenever its chain has changed, so that there may be events, with pages of verified headers to store. Without
  // pages to store the list is empty.
  const storePages = (first, list, window, bitcoin) => {
    if (list.length > 0) pages?.save(first, list, window && { window, bitcoin });
    callbacks.changed();
  };
  const names = upstreams.map(({ name }) => name);
  const reporterOf = connection(names, (reason) => callbacks.connection?.(reason));
  const exchanges = upstreams.map(({ transport, mask, explain }, index) =>
    exchangeOver(transport, life, () => pages?.waitForSpace(), reporterOf(index), mask, explain));
  /** Exchanges for {@link watchChain}. They do not report failures: the module's own exchanges do. */
  const watchExchanges = upstreams.map(({ transport, mask, explain }) => exchangeOver(transport, life, undefined, undefined, mask, explain));
  const startsAtShownBlock = isShown(config);
  // Block 0 of a development chain is fetched while the module loads.
  const [{ Client, methods, takeChanged }, checkpoint] = await Promise.all([
    load(module).then((compiled) => instance(instantiate, compiled, life)),
    startsAtShownBlock ? firstBlock(exchanges, names, life) : config.checkpoint,
  ]);
  // A development chain may not have mined for days, so that its blocks have no greatest age.
  Object.assign(config, { checkpoint }, startsAtShownBlock && { maxAge: config.maxAge ?? 0 });
  client = withOptions(() => new Client(settings(config, names), exchanges, storePages, callbacks.progress && progressListener(callbacks.progress)));
  // A start by work neither reads nor writes headers: otherwise a program that can write to the store would choose the start. A development
  // chain begins anew with each start of its program.
  if (config.checkpoint !== 'work' && !startsAtShownBlock) {
    const listeners = { onError: callbacks.storeError, onTurn: (first) => client?.keepAgain(first) };
    pages = pagesIn(storage, config, { ...listeners, isWindow: client.isByWindow() });
  }
  if (pages) {
    await restore(life, () => client, pages);
    // Rejected only when the client ends.
    prove(life, () => client, pages).catch(() => {});
  }
  /** Asks the client, not an upstream; returns the result. */
  const askClient = async (method, ...params) => JSON.parse(await life.now(() => client.request(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })), true)).result;
  await life.run(() => client.start()).catch(async (reason) => {
    if (typeof reason !== 'string') throw reason;
    const expected = await askClient('eth_chainId');
    const foreign = await life.run(() => foreignNetworks(expected, chainIdRequests(exchanges, names)));
    // If all upstreams are of other networks, the client's reason adds nothing.
    throw disconnected(foreign ? (foreign.isAll ? foreign.words : `${reason}; ${foreign.words}`) : reason);
  });
  /**
   * Replaces the client by one that starts at the block 0 which the upstreams show now. The new client has none of the subscriptions; events.js
   * makes them again when it polls them.
   */
  const beginAnew = async () => {
    const checkpoint = await firstBlock(exchanges, names, life);
    callbacks.connection?.(`${names.join(', ')}: the chain has begun anew, with block 0 ${checkpoint.hash}; this client follows it from there`);
    // Without a progress listener: that one is for the first synchronization.
    const next = new Client(settings({ ...config, checkpoint }, names), exchanges, storePages);
    try {
      await life.run(() => next.start(), true);
    } catch (error) {
      next.close();
      throw error;
    }
    client.close();
    client = next;
    callbacks.connection?.();
    callbacks.changed();
  };
  watchChain({ life, exchanges: watchExchanges, names, askClient, startsAtShownBlock, report: (reason) => callbacks.connection?.(reason), beginAnew }).catch(() => {});
  const hint = (index) => client?.hint(index);
  upstreams.forEach(({ transport }, index) => transport.heads?.(() => hint(index)));
  whenOnline(life, () => client?.wake());
  return {
    methods: JSON.parse(methods()),
    send: (text, quiet, method, onFilter, caller) =>
      life.now(() => (caller ? client.requestFrom(...caller, text, onFilter) : client.request(text, onFilter)), quiet),
    takeChanged,
    closed,
  };
};

/** Calls `wake` when a page or a worker is online again. Without it the client would pause upstreams that failed meanwhile for minutes. */
function whenOnline(life, wake) {
  globalThis.addEventListener?.('online', wake);
  life.onEnd(() => globalThis.removeEventListener?.('online', wake));
}

/** Lets the module restore the newest stored pages. An invalid page is dropped with those after it. */
async function restore(life, client, pages) {
  const record = await life.run(pages.record);
  if (record?.bitcoin) client().restoreBitcoin(record.bitcoin);
  let count = await life.run(pages.count);
  for (let failures = 0; ; failures += 1) {
    client().restoring(count, record?.window);
    const invalid = await restorePages(life, client, pages);
    if (invalid === undefined) {
      if (failures > 0) void pages.save(count, []);
      return client().restored();
    }
    // A single invalid page is damage. If there are more, nothing says how many, so half of the pages are dropped each time.
    count = failures > 0 ? Math.min(invalid, Math.floor(count / 2)) : invalid;
  }
}

/** Passes pages to the module while it wants more. Returns the number of an invalid page; undefined if all were valid. */
async function restorePages(life, client, pages) {
  for (let index; (index = client().wantedPage()) !== undefined; ) {
    const page = await life.run(() => pages.read(index));
    if (!page || !client().restore(page)) return index;
  }
  return undefined;
}

/** Milliseconds between two steps of proving stored headers: each step takes a few milliseconds, and the page needs time for its other work. */
const PROVING_PAUSE = 20;

/** Lets the module prove the remaining restored headers in the background, a few milliseconds at a time. */
async function prove(life, client, pages) {
  for (let more = true; more; ) {
    await life.run(() => pause(PROVING_PAUSE), true);
    const index = client().wantedPage();
    more = client().prove(index === undefined ? undefined : await life.run(() => pages.read(index), true));
  }
}

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis).unref?.());
