// Makes the public provider (EIP-1193) over a client, which runs on this thread or in a worker: adds events, the user's wallet, and the
// replacement of the client when the upstreams change.
import { withEvents } from './events.js';
import { disconnected, failure, limited, newLife } from './life.js';
import { INVALID_REQUEST, answered, checkMembers, message } from './message.js';
import { stateProofs } from './state-proofs.js';
import { checkScheme } from './upstream-words.js';
import { verifications } from './verification.js';
import { withWallet } from './wallet.js';

/** Milliseconds between two polls of subscriptions, for events that could not be emitted when the chain changed. */
const POLL_INTERVAL = 10_000;

/** The code of `disconnect` while no upstream answers: "try again later" of WebSocket's status codes, which EIP-1193 refers to. */
const TRY_LATER = 1013;

/**
 * A client or a development chain that is open.
 * @typedef {object} Link
 * @property {import('./verification.js').Methods} methods
 * @property {(message: string, quiet?: boolean, method?: string, onFilter?: OnFilter, caller?: readonly unknown[]) => string | undefined | Promise<string | undefined>} send
 * answers a JSON-RPC request with this method, at once if it can; `quiet` if no caller waits for the answer; `caller` are the
 * parameters of a caller of a server (`callerOf` in bin/server.js); only the module of dev-module.js takes them
 * @property {() => boolean} takeChanged whether the answers since the last call have changed the chain or its pool
 * @property {Promise<void>} [closed] resolves after the end, when nothing is left to write
 *
 * Called before an answer with the id of each filter or subscription that its request has made or ended.
 * @callback OnFilter
 * @param {string} id
 * @param {boolean} isMade
 * @param {boolean} isSubscription
 *
 * Opens a client. Everything that the client starts ends with `life`. If the client fails, it ends `life`.
 * @callback Open
 * @param {ReturnType<typeof newLife>} life
 * @param {object} options
 * @param {{changed: () => void, progress?: (progress: object) => void, storeError?: (error: Error) => void, connection?: (reason?: string) => void}} callbacks
 * `changed` is called when the chain may have changed, `progress` during the first synchronization, `storeError` for the first failure of the
 * store, and `connection` with the reason when no upstream answers any more, and without one when an upstream answers again
 * @returns {Promise<Link>}
 */

/** Resolves a relative address against the page. The engine's own error would contain the whole address, with its password and key. */
function address(upstream, index) {
  if (typeof upstream === 'function') return upstream;
  checkScheme(upstream);
  try {
    return new URL(upstream, globalThis.location?.href).href;
  } catch {
    throw new TypeError(`upstream ${index} is neither a function nor an address`);
  }
}

/** The option `upstreams` as a list of functions and absolute addresses. */
function addresses(upstreams) {
  const given = [upstreams].flat();
  if (given.length === 0) throw failure(INVALID_REQUEST, 'upstreams: at least one is needed');
  return given.map(address);
}

/** Wraps a callback of the caller, so that an exception of it is only printed. */
const guarded = (callback) =>
  callback &&
  ((value) => {
    try {
      callback(value);
    } catch (error) {
      console.error(error);
    }
  });

/**
 * A provider of a light client.
 * @param {Open} open
 * @param {import('./index.js').ProviderOptions} options
 */
export async function provide(open, options) {
  const { signal, timeout, signer, upstream, upstreams = upstream ?? [], store, storage = store, ...rest } = options ?? {};
  if (signer && typeof signer.request !== 'function') throw failure(INVALID_REQUEST, 'signer: give an EIP-1193 provider, such as window.ethereum');
  const { onProgress, onStoreError, ...config } = rest;
  const { unproven = 'refuse' } = config;
  const shell = newShell({ signer, interval: POLL_INTERVAL, needsProofs: unproven === 'refuse' });
  const callbacks = { changed: shell.changed, progress: guarded(onProgress), storeError: guarded(onStoreError) };
  const start = (upstreams, limits) =>
    shell.attach((life, connection) => open(life, { ...config, upstreams: addresses(upstreams), storage }, { ...callbacks, connection }), limits);
  await start(upstreams, { signal, timeout });
  // Changes run one after the other, so that the upstreams of the last call are used in the end.
  let changing = Promise.resolve();
  const setUpstreams = async (upstreams, limits = {}) => {
    checkMembers(limits, 'setUpstreams', ['signal', 'timeout']);
    const next = changing.then(() => start(upstreams, limits));
    changing = next.catch(() => {});
    return next;
  };
  return shell.provider({ setUpstreams });
}

/**
 * A provider of a development chain.
 * @param {Open} open
 * @param {object} options
 * @param {{interval: number, signal?: AbortSignal, timeout?: number}} settings
 */
export async function provideChain(open, options, { interval, ...limits }) {
  const shell = newShell({ interval, holdsKeys: true });
  await shell.attach((life) => open(life, options, { changed: shell.changed }), limits);
  return shell.provider({});
}

/** The part of a provider that stays when its client is replaced: events, and the current client. */
function newShell({ signer, interval, holdsKeys = false, needsProofs = false }) {
  /** The current client and its life. */
  let current;
  /** The lives of all clients that are open or being opened. */
  const lives = new Set();
  /** Work for the end of the provider. */
  const ends = [];
  let closed;
  /** Why no upstream of the current client answers; undefined while one does. */
  let lost;
  /** Asks the client; returns the answer if the client has it at once, otherwise a promise. */
  function askNow(call, quiet) {
    const answer = current.send(message(call), quiet, call.method);
    return answer instanceof Promise ? answer.then(answered) : answered(answer);
  }
  const ask = async (call, quiet) => askNow(call, quiet);
  const events = withEvents(askNow, interval, () => current.takeChanged());
  const { emit, listens } = events;
  const state = stateProofs({ ask, emit, listens, needsProofs, lost: () => lost });

  function close(reason) {
    if (closed) return;
    closed = reason;
    for (const life of [...lives]) life.end(reason);
    for (const work of ends) work();
    events.close(reason);
  }

  /** Makes a client the current one once it is open. The former one ends when its pending calls are answered. */
  async function attach(open, { signal, timeout } = {}) {
    if (closed) throw closed;
    const life = newLife();
    lives.add(life);
    life.onEnd(() => lives.delete(life));
    const cancelLimits = limited(life, signal, timeout);
    let link;
    /** What this client reported last: why no upstream answers, or nothing. */
    let reported;
    const onConnection = (reason) => {
      reported = reason;
      if (current?.life === life) connection(reason);
    };
    try {
      link = await life.run(() => open(life, onConnection));
    } catch (error) {
      // Ends what the failed attempt has started.
      life.end(error);
      throw error;
    } finally {
      cancelLimits();
    }
    const former = current;
    current = { ...link, life };
    life.onEnd((reason) => current.life === life && close(reason));
    former?.life.endWhenIdle(disconnected('the upstreams have changed'));
    if (former) {
      events.moved();
      soon(state.look);
    }
    connection(reported);
  }

  /** Emits `disconnect` when no upstream answers any more, and `connect` when one does again. */
  function connection(reason) {
    if (closed || (reason === undefined) === (lost === undefined)) return;
    lost = reason;
    if (reason === undefined) connected();
    else emit('disconnect', failure(TRY_LATER, `no upstream answers: ${reason}`));
  }

  /** Runs work once the code that awaits the provider has had time to register listeners. */
  const soon = (work) => void setTimeout(() => work().catch(() => {}), 0);

  /** Emits `connect`. */
  function connected() {
    soon(async () => {
      if (!listens('connect')) return;
      const { result: chainId } = await ask({ method: 'eth_chainId', params: [] }, true);
      if (lost === undefined) emit('connect', { chainId });
    });
  }

  /** Emits `progress`. */
  async function progress() {
    const status = await ask({ method: 'rootlight_syncStatus', params: [] }, true);
    const { startingBlock, currentBlock, highestBlock, headersPerSecond, secondsLeft } = status.result;
    const numbers = { startingBlock: Number(startingBlock), currentBlock: Number(currentBlock), highestBlock: Number(highestBlock) };
    emit('progress', { ...numbers, headersPerSecond: headersPerSecond ?? 0, secondsLeft: secondsLeft ?? undefined });
  }

  /** Called when the chain may have changed. */
  function changed() {
    if (!current || closed) return;
    void events.changed();
    if (listens('progress')) progress().catch(() => {});
  }

  return {
    attach,
    changed,
    /** The public object, with `more` methods. */
    provider(more) {
      const { provider } = events;
      const wallet = withWallet(provider.requestWithLevel, { signer, holdsKeys, emit, reason: () => closed });
      const explained = state.explained(wallet.requestWithLevel);
      const requestWithLevel = abortable(verifications(explained, { ask, emit, listens, holdsKeys, methods: () => current.methods }));
      ends.push(wallet.close);
      connected();
      soon(state.look);
      return Object.freeze({
        ...more,
        request: async (call, options) => (await requestWithLevel(call, options)).result,
        requestWithLevel: async (call, options) => requestWithLevel(call, options),
        on: provider.on,
        removeListener: provider.removeListener,
        close: () => close(disconnected('the provider is closed')),
      });
    },
  };
}

/** Rejects a request with its signal's reason as soon as the signal aborts. The client's work is not interrupted. */
function abortable(requestWithLevel) {
  return (call, { signal } = {}) => {
    if (!signal) return requestWithLevel(call);
    if (signal.aborted) return Promise.reject(signal.reason);
    const asked = requestWithLevel(call);
    return new Promise((resolve, reject) => {
      const abort = () => {
        reject(signal.reason);
        // The caller never learns the id of this subscription.
        if (call?.method === 'eth_subscribe') asked.then(({ result }) => requestWithLevel({ method: 'eth_unsubscribe', params: [result] })).catch(() => {});
      };
      signal.addEventListener('abort', abort, { once: true });
      asked.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
    });
  };
}
