// The side of a worker: clients and chains for the pages that ask. remote.js is the other side. Pages with the same options
// share a client.
import { functionsOf, hasFunctions } from './functions.js';
import { newLife, disconnected } from './life.js';
import { listen, packed, signOfLife, watch } from './ports.js';

const THREADS = 'node:worker_threads';

/**
 * Serves the pages of this worker.
 * @param {Record<'client' | 'chain', import('./provider.js').Open>} opens
 */
export function serve(opens) {
  const clients = new Map();
  const alive = signOfLife('worker', new Promise(() => {}));
  const accept = (port) => acceptPort(port, { clients, opens, alive });
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
function acceptPort(port, { clients, opens, alive }) {
  /** The page's part in a client: see {@link joined}. */
  let part;
  const post = (message) => port.postMessage(message);
  const end = new AbortController();
  const functions = functionsOf(post);
  const leave = async () => {
    end.abort();
    await part?.leave();
    post({ type: 'closed' });
  };
  const messages = {
    hello: async () => post({ type: 'hello', lock: await alive }),
    open({ kind, options, lock }) {
      if (part) return;
      const given = JSON.parse(options);
      const own = hasFunctions(given);
      // A client that calls functions of its page is not shared.
      const key = own ? Symbol(kind) : `${kind} ${options}`;
      let client = clients.get(key);
      if (!client) {
        client = newClient((life, heard) => opens[kind](life, own ? functions.restored(given) : given, heard));
        clients.set(key, client);
        client.life.onEnd(() => clients.get(key) === client && clients.delete(key));
      }
      part = joined(client, post);
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
  const posts = new Set();
  const tell = (message, except) => posts.forEach((post) => post !== except && post(message));
  const heard = {
    changed: () => tell({ type: 'changed' }),
    progress: (progress) => tell({ type: 'progress', progress }),
    storeError: ({ message }) => tell({ type: 'storeError', message }),
    connection(reason) {
      client.lost = reason;
      tell({ type: 'connection', reason });
    },
  };
  const opening = life.run(() => open(life, heard));
  life.onEnd((reason) => tell({ type: 'ended', error: packed(reason) }));
  opening.catch((error) => life.end(error));
  /** `lost`: why no upstream answers, if none does. */
  const client = { life, posts, tell, opening, lost: undefined };
  return client;
}

/** One page's part in a client. */
function joined(client, post) {
  /** The page's filters and subscriptions: the methods that end them, by id. */
  const made = new Map();
  const { life, posts, opening, tell } = client;
  let left = false;
  posts.add(post);
  const opened = ({ methods }) => {
    post({ type: 'opened', methods });
    if (client.lost !== undefined) post({ type: 'connection', reason: client.lost });
  };
  opening.then(opened, (error) => post({ type: 'failed', error: packed(error) }));

  /** Remembers what a call makes, and by which method it ends, so that it ends with its page. */
  const remember = (end) => (id, isMade) => (isMade ? made.set(id, end) : made.delete(id));

  return {
    async ask({ id, text, quiet, method }) {
      try {
        const link = await opening;
        const answer = await link.send(text, quiet, method, remember(link.methods[method]?.endedBy));
        const changed = link.takeChanged();
        post({ type: 'answer', id, text: answer, changed });
        if (changed) tell({ type: 'changed' }, post);
      } catch (error) {
        post({ type: 'answer', id, error: packed(error) });
      }
    },
    /** Resolves when nothing is left to write. */
    async leave() {
      if (left) return;
      left = true;
      posts.delete(post);
      const link = await Promise.race([opening, Promise.resolve(undefined)]).catch(() => undefined);
      if (posts.size === 0) {
        life.end(disconnected('the provider is closed'));
        await link?.closed;
        return;
      }
      for (const [id, method] of made) {
        // The answer is a promise only if it is not there at once.
        Promise.resolve(link?.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [id] }), true)).catch(() => {});
      }
    },
  };
}
