// A light client on this thread. The caller passes the module that contains it.
import { connection, exchangeOver } from './exchange.js';
import { firstBlock, isShown } from './first-block.js';
import { instance } from './instance.js';
import { disconnected } from './life.js';
import { withOptions } from './message.js';
import { provide } from './provider.js';
import { tellers, watchChain } from './renewal.js';
import { maskOf, withoutSecrets } from './secrets.js';
import { pagesIn } from './store.js';
import { httpTransport } from './transport.js';
import { foreignNetworks, unreachable } from './upstream-words.js';
import { webSocketTransport } from './websocket.js';

/**
 * The transport of an upstream, a name by which a quorum distinguishes owners, what removes the secrets of its address from texts, and
 * whether this package closes its connections.
 */
export function reach(upstream, index) {
  if (typeof upstream === 'function') return { transport: upstream, name: `upstream ${index}`, mask: withoutSecrets, own: false };
  const url = new URL(upstream);
  // Paths may contain API keys.
  const common = { name: url.origin, mask: maskOf(url), own: true, explain: unreachable };
  return { ...common, transport: /^wss?:$/.test(url.protocol) ? webSocketTransport(url) : httpTransport(url) };
}

/** The options of the module, in its own units: plain objects of this realm, whose members are read now. */
export const settings = ({ pollSeconds, network, checkpoint, ...rest }, names) => ({
  ...rest,
  names,
  network: typeof network === 'string' ? network : JSON.stringify(network),
  checkpoint: checkpoint && typeof checkpoint === 'object' ? { ...checkpoint } : checkpoint,
  pollMillis: pollSeconds && Math.round(pollSeconds * 1000),
});

/** Converts the module's figures to {@link import('./index.js').SyncProgress}. Before an upstream has said how far its chain goes there are none. */
const told = (onProgress) => (startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft) =>
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
export const clientsOf = (load, instantiate) => async (life, options, heard) => {
  const { upstreams, module, storage, ...config } = options;
  const reached = upstreams.map(reach);
  for (const { own, transport } of reached) if (own) life.onEnd(() => transport.close?.());
  /** The module's client. No reference to it is left after the end, so that its memory can be freed. */
  let client;
  /** The stored headers, once the module has said how it starts. */
  let pages;
  /** Resolves after the end, when the pages that waited are written. */
  const closed = new Promise((resolve) => {
    life.onEnd(() => {
      client?.close();
      client = undefined;
      resolve(pages?.close());
    });
  });
  // The module passes verified headers as they arrive, which is when there may be events. Where it has nothing to store, it passes
  // empty lists.
  const keep = (first, list, window, bitcoin) => {
    if (list.length > 0) pages?.save(first, list, window && { window, bitcoin });
    heard.changed();
  };
  const names = reached.map(({ name }) => name);
  const line = connection(names, (reason) => heard.connection?.(reason));
  const exchanges = reached.map(({ transport, mask, explain }, index) =>
    exchangeOver(transport, life, () => pages?.room(), line(index), mask, explain));
  /** Looks at the upstreams tell nothing of the connection: the module's own exchanges do, and it knows the failure then. */
  const looks = reached.map(({ transport, mask, explain }) => exchangeOver(transport, life, undefined, undefined, mask, explain));
  const isDev = isShown(config);
  // Block 0 arrives while the module loads.
  const [{ Client, methods, takeChanged }, checkpoint] = await Promise.all([
    load(module).then((compiled) => instance(instantiate, compiled, life)),
    isDev ? firstBlock(exchanges, names, life) : config.checkpoint,
  ]);
  Object.assign(config, { checkpoint }, isDev && { maxAge: config.maxAge ?? 0 });
  client = withOptions(() => new Client(settings(config, names), exchanges, keep, heard.progress && told(heard.progress)));
  // A start by work neither reads nor writes headers: otherwise whoever writes to the store would choose the start. A development
  // chain begins anew with each start of its program.
  if (config.checkpoint !== 'work' && !isDev) {
    const told = { onError: heard.storeError, onTurn: (first) => client?.keepAgain(first) };
    pages = pagesIn(storage, config, { ...told, isWindow: client.isByWindow() });
  }
  if (pages) {
    await restore(life, () => client, pages);
    prove(life, () => client, pages).catch(() => {});
  }
  /** Asks the client itself. */
  const own = async (method, ...params) => JSON.parse(await life.now(() => client.request(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })), true)).result;
  await life.run(() => client.start()).catch(async (reason) => {
    if (typeof reason !== 'string') throw reason;
    const expected = await own('eth_chainId');
    const foreign = await life.run(() => foreignNetworks(expected, tellers(exchanges, names)));
    // Where all upstreams are of other networks, the client's own reason says nothing more.
    throw disconnected(foreign ? (foreign.isAll ? foreign.words : `${reason}; ${foreign.words}`) : reason);
  });
  /** Another client takes the place of this one, with the block 0 that the upstreams show now. Its subscriptions are made again. */
  const begin = async () => {
    const checkpoint = await firstBlock(exchanges, names, life);
    heard.connection?.(`${names.join(', ')}: the chain has begun anew, with block 0 ${checkpoint.hash}; this client follows it from there`);
    const next = new Client(settings({ ...config, checkpoint }, names), exchanges, keep);
    try {
      await life.run(() => next.start(), true);
    } catch (error) {
      next.close();
      throw error;
    }
    client.close();
    client = next;
    heard.connection?.();
    heard.changed();
  };
  watchChain({ life, exchanges: looks, names, own, isDev, tell: (reason) => heard.connection?.(reason), begin }).catch(() => {});
  const hint = (index) => client?.hint(index);
  reached.forEach(({ transport }, index) => transport.heads?.(() => hint(index)));
  whenOnline(life, () => client?.wake());
  return {
    methods: JSON.parse(methods()),
    send: (text, quiet, method, heard, caller) =>
      life.now(() => (caller ? client.requestFrom(...caller, text, heard) : client.request(text, heard)), quiet),
    takeChanged,
    closed,
  };
};

/** Calls back when a page or a worker has its network again. Upstreams that failed meanwhile would be left alone for minutes. */
function whenOnline(life, wake) {
  globalThis.addEventListener?.('online', wake);
  life.onEnd(() => globalThis.removeEventListener?.('online', wake));
}

/** Passes the newest stored pages to the module. An invalid page is dropped with those after it. */
async function restore(life, client, pages) {
  const record = await life.run(pages.record);
  if (record?.bitcoin) client().restoreBitcoin(record.bitcoin);
  let count = await life.run(pages.count);
  for (let failures = 0; ; failures += 1) {
    client().restoring(count, record?.window);
    const wrong = await given(life, client, pages);
    if (wrong === undefined) {
      if (failures > 0) void pages.save(count, []);
      return client().restored();
    }
    // One invalid page is damage. If there are more, their number is not known, so half of the pages are dropped each time.
    count = failures > 0 ? Math.min(wrong, Math.floor(count / 2)) : wrong;
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
