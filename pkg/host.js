// The worker's side of clients and development chains that run in a worker. remote.js is the page's side; ports.js and functions.js are shared
// by both. Pages that connect to a shared worker with the same options share a client.
import { functionsOf, hasFunctions } from './functions.js';
import { newLife, disconnected } from './life.js';
import { listen, packed, signOfLife, watch } from './ports.js';

/** The module of Node.js for worker threads. */
const THREADS = 'node:worker_threads';

/**
 * Serves the pages of this worker: of a SharedWorker, of a dedicated worker, or of a worker thread of Node.js.
 * @param {Record<'client' | 'chain', import('./provider.js').Open>} opens the function that opens each kind
 */
export function serve(opens) {
  /** Clients by their kind and options. */
  const clients = new Map();
  // A lock that is held until the worker ends, by which pages notice the end.
  const workerLock = signOfLife('worker', new Promise(() => {}));
  const accept = (port) => acceptPort(port, { clients, opens, workerLock });
  if ('onconnect' in globalThis) {
    globalThis.onconnect = ({ ports: [port] }) => {
      accept(port);
      port.start();
    };
  } else if (typeof globalThis.postMessage === 'function') {
    accept(globalThis);
  } else {
    // The name is a variable so that bundlers for browsers do not resolve it.
    void import(/* @vite-ignore */ /* webpackIgnore: true */ THREADS).then(({ parentPort }) => accept(parentPort));
  }
}

/** Answers the messages of one page, which uses at most one client. */
function acceptPort(port, { clients, opens, workerLock }) {
  /** The page's part in a client: see {@link joined}. */
  let part;
  const post = (message) => port.postMessage(message);
  /** Aborted when the page leaves. */
  const end = new AbortController();
  const functions = functionsOf(post);
  const leave = async () => {
    end.abort();
    await part?.leave();
    post({ type: 'closed' });
  };
  /** What to do with each type of message of the page. */
  const messages = {
    hello: async () => post({ type: 'hello', lock: await workerLock }),
    open({ kind, options, lock }) {
      if (part) return;
      const given = JSON.parse(options);
      const isUnshared = hasFunctions(given);
      // A client that calls functions of its page is not shared.
      const key = isUnshared ? Symbol(kind) : `${kind} ${options}`;
      let client = clients.get(key);
      if (!client) {
        client = newClient((life, callbacks) => opens[kind](life, isUnshared ? functions.restored(given) : given, callbacks));
        clients.set(key, client);
        client.life.onEnd(() => clients.get(key) === client && clients.delete(key));
      }
      part = joined(client, post);
      // `lock` is held by the page while it lives.
      watch(lock, end.signal, leave);
    },
    ask: (asked) => part?.ask(asked),
    ...functions.messages,
    close: leave,
  };
  listen(port, 'message', ({ data }) => void messages[data?.type]?.(data));
  listen(port, 'close', leave);
}

/** A client for one or several pages. It ends when the last one leaves. */
function newClient(open) {
  const life = newLife();
  /** The functions that send a message to each page. */
  const posts = new Set();
  const postToAll = (message, except) => posts.forEach((post) => post !== except && post(message));
  const callbacks = {
    changed: () => postToAll({ type: 'changed' }),
    progress: (progress) => postToAll({ type: 'progress', progress }),
    storeError: ({ message }) => postToAll({ type: 'storeError', message }),
    connection(reason) {
      client.lost = reason;
      postToAll({ type: 'connection', reason });
    },
  };
  const opening = life.run(() => open(life, callbacks));
  life.onEnd((reason) => postToAll({ type: 'ended', error: packed(reason) }));
  opening.catch((error) => life.end(error));
  /** `lost`: why no upstream answers, if none does. */
  const client = { life, posts, postToAll, opening, lost: undefined };
  return client;
}

/** Adds a page to a client. Returns the functions by which the page asks the client and leaves it. */
function joined(client, post) {
  /** The page's filters and subscriptions: the methods that end them, by id. */
  const filters = new Map();
  const { life, posts, opening, postToAll } = client;
  let left = false;
  posts.add(post);
  const opened = ({ methods }) => {
    post({ type: 'opened', methods });
    if (client.lost !== undefined) post({ type: 'connection', reason: client.lost });
  };
  opening.then(opened, (error) => post({ type: 'failed', error: packed(error) }));

  /** Stores each filter or subscription that a call makes, and the method `end` by which it ends, so that it ends with its page. */
  const recordFilter = (end) => (id, isMade) => (isMade ? filters.set(id, end) : filters.delete(id));

  return {
    async ask({ id, text, quiet, method }) {
      try {
        const link = await opening;
        const answer = await link.send(text, quiet, method, recordFilter(link.methods[method]?.endedBy));
        const changed = link.takeChanged();
        post({ type: 'answer', id, text: answer, changed });
        if (changed) postToAll({ type: 'changed' }, post);
      } catch (error) {
        post({ type: 'answer', id, error: packed(error) });
      }
    },
    /** Removes the page. Resolves when nothing is left to write. */
    async leave() {
      if (left) return;
      left = true;
      posts.delete(post);
      // Undefined while the client is being opened.
      const link = await Promise.race([opening, Promise.resolve(undefined)]).catch(() => undefined);
      if (posts.size === 0) {
        life.end(disconnected('the provider is closed'));
        await link?.closed;
        return;
      }
      for (const [id, method] of filters) {
        // `send` may return the answer itself instead of a promise.
        Promise.resolve(link?.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [id] }), true)).catch(() => {});
      }
    },
  };
}
