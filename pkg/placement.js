// Decides where a client or a development chain runs (the option `worker`): in a shared worker, in a worker of its own, or on this thread.
import { failure } from './life.js';
import { INVALID_REQUEST } from './message.js';
import { inWorker, NotStarted } from './remote.js';

/** The module of Node.js for worker threads. */
const THREADS = 'node:worker_threads';

/** Starts a worker of its own: a Worker of a browser, Deno or Bun, or a thread of Node.js. */
async function dedicated({ dedicated, address }) {
  if (typeof globalThis.Worker === 'function') return dedicated();
  // The name is a variable so that bundlers for browsers do not resolve it.
  const { Worker } = await import(/* @vite-ignore */ /* webpackIgnore: true */ THREADS);
  // Without the flags of this process: some, such as --eval, may not suit the thread.
  return new Worker(address(), { execArgv: [] });
}

/** Starts, or joins, the shared worker of the site. */
function shared({ shared }) {
  if (typeof globalThis.SharedWorker !== 'function') throw new Error('this runtime has no shared workers');
  return shared();
}

/**
 * The reason why a client must run on this thread; undefined if its options can be sent to a worker. Objects of the caller cannot be sent.
 * Upstreams that are functions stay in the page, and the worker calls them by messages (functions.js).
 */
function reasonToStay({ storage, module, fork }) {
  if (typeof fork?.url === 'function') return '`fork.url` is a function of yours';
  if (storage && typeof storage === 'object' && !(storage instanceof URL)) return '`storage` is an object of yours';
  if (module && typeof module !== 'string' && !(module instanceof URL)) return '`module` is not an address';
  return undefined;
}

/** Whether an upstream is a function of the page. */
const hasFunctions = ({ upstreams = [] }) => upstreams.some((upstream) => typeof upstream === 'function');

/**
 * The options as they are sent to a worker. Addresses are absolute, since a worker resolves relative ones otherwise. Members are sorted: pages
 * share a client if the texts of their options are equal.
 */
function optionsToSend({ module, fork, ...options }) {
  const absolute = (address) => address && new URL(address, globalThis.location?.href).href;
  const own = { module: absolute(module), fork: fork && { ...fork, url: absolute(fork.url) } };
  return Object.fromEntries(Object.entries({ ...options, ...own }).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The error for a wrong option `worker`. */
const wrong = (reason) => failure(INVALID_REQUEST, `worker: ${reason}`);

/** The function that makes the worker which the caller asks for. */
function makerOf(worker, workers) {
  if (typeof worker === 'function') return worker;
  if (worker === 'shared') return () => shared(workers);
  if (worker === 'dedicated') return () => dedicated(workers);
  throw wrong("give 'shared', 'dedicated', false, or a function that makes a worker");
}

/** Whether {@link notice} has printed its line. */
let noticed = false;

/** Says once why clients run on the page's thread. */
function notice(reason) {
  if (noticed) return;
  noticed = true;
  console.info(`rootlight: the client runs on the page's own thread, which its work interrupts: ${reason}`);
}

/** Opens a client in the first worker that starts: a shared one, then one of its own; otherwise on this thread. */
async function anywhere(local, workers, life, options, callbacks) {
  const reasons = [];
  const own = () => dedicated(workers);
  for (const make of hasFunctions(options) ? [own] : [() => shared(workers), own]) {
    try {
      return await inWorker(make, 'client')(life, optionsToSend(options), callbacks);
    } catch (error) {
      if (!(error instanceof NotStarted) || life.isOver) throw error;
      reasons.push(error.message);
    }
  }
  notice(reasons.join('; '));
  return local(life, options, callbacks);
}

/**
 * Places a client as the option `worker` says. By default only pages use workers: other threads have no page to disturb.
 * @param {import('./provider.js').Open} local opens a client on this thread
 * @param {{shared: Function, dedicated: Function, address: Function}} workers
 * @returns {import('./provider.js').Open}
 */
export const placed = (local, workers) => async (life, { worker, ...options }, callbacks) => {
  const reason = reasonToStay(options);
  const isPage = globalThis.document !== undefined;
  if (worker === false || (worker === undefined && (reason || !isPage))) return local(life, options, callbacks);
  if (worker === undefined) return anywhere(local, workers, life, options, callbacks);
  const make = makerOf(worker, workers);
  if (reason) throw wrong(`${reason}, which keeps the client on this thread: leave \`worker\` out`);
  if (worker === 'shared' && hasFunctions(options)) throw wrong("an upstream is a function, which tabs cannot share: give 'dedicated'");
  return inWorker(make, 'client')(life, optionsToSend(options), callbacks);
};

/**
 * Places a development chain: on this thread by default. A chain belongs to one page, so that it is never in a shared worker.
 * @param {import('./provider.js').Open} local
 * @param {{dedicated: Function, address: Function}} workers
 * @returns {import('./provider.js').Open}
 */
export const placedChain = (local, workers) => async (life, { worker = false, ...options }, callbacks) => {
  if (worker === false) return local(life, options, callbacks);
  if (worker === 'shared') throw wrong("a chain belongs to one page: give 'dedicated'");
  const make = makerOf(worker, workers);
  const reason = reasonToStay(options);
  if (reason) throw wrong(`${reason}, which keeps the chain on this thread: leave \`worker\` out`);
  return inWorker(make, 'chain')(life, optionsToSend(options), callbacks);
};
