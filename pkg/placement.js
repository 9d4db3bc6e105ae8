// Where a client runs: in a shared worker, in a worker of its own, or on this thread.
import { failure } from './life.js';
import { INVALID_REQUEST } from './message.js';
import { inWorker, NotStarted } from './remote.js';

const THREADS = 'node:worker_threads';

/** A worker of its own: of a browser, Deno and Bun, or a thread of Node.js. */
async function dedicated({ dedicated, address }) {
  if (typeof globalThis.Worker === 'function') return dedicated();
  // The name is a variable so that bundlers for browsers do not resolve it.
  const { Worker } = await import(/* @vite-ignore */ /* webpackIgnore: true */ THREADS);
  // Flags of this process, as --eval, may not suit the thread.
  return new Worker(address(), { execArgv: [] });
}

function shared({ shared }) {
  if (typeof globalThis.SharedWorker !== 'function') throw new Error('this runtime has no shared workers');
  return shared();
}

/**
 * The reason that keeps a client on this thread; undefined if its options can be sent to a worker. Objects of the caller cannot;
 * upstreams that are functions stay here, and the worker has them called.
 */
function bound({ storage, module, fork }) {
  if (typeof fork?.url === 'function') return '`fork.url` is a function of yours';
  if (storage && typeof storage === 'object' && !(storage instanceof URL)) return '`storage` is an object of yours';
  if (module && typeof module !== 'string' && !(module instanceof URL)) return '`module` is not an address';
  return undefined;
}

const hasFunctions = ({ upstreams = [] }) => upstreams.some((upstream) => typeof upstream === 'function');

/** The options as they are sent: addresses are absolute, since a worker has another base, and in a fixed order. */
function sent({ module, fork, ...options }) {
  const absolute = (address) => address && new URL(address, globalThis.location?.href).href;
  const own = { module: absolute(module), fork: fork && { ...fork, url: absolute(fork.url) } };
  return Object.fromEntries(Object.entries({ ...options, ...own }).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const wrong = (reason) => failure(INVALID_REQUEST, `worker: ${reason}`);

/** The way to make the worker that the caller asks for. */
function wanted(worker, workers) {
  if (typeof worker === 'function') return worker;
  if (worker === 'shared') return () => shared(workers);
  if (worker === 'dedicated') return () => dedicated(workers);
  throw wrong("give 'shared', 'dedicated', false, or a function that makes a worker");
}

let noticed = false;

/** Says once why clients run on the page's thread. */
function notice(reason) {
  if (noticed) return;
  noticed = true;
  console.info(`rootlight: the client runs on the page's own thread, which its work interrupts: ${reason}`);
}

/** Opens a client in the first worker that starts, or on this thread. */
async function anywhere(local, workers, life, options, heard) {
  const reasons = [];
  const own = () => dedicated(workers);
  for (const make of hasFunctions(options) ? [own] : [() => shared(workers), own]) {
    try {
      return await inWorker(make, 'client')(life, sent(options), heard);
    } catch (error) {
      if (!(error instanceof NotStarted) || life.isOver) throw error;
      reasons.push(error.message);
    }
  }
  notice(reasons.join('; '));
  return local(life, options, heard);
}

/**
 * Places a client as the option `worker` says. By default only pages use workers: other threads have no page to disturb.
 * @param {import('./provider.js').Open} local opens a client on this thread
 * @param {{shared: Function, dedicated: Function, address: Function}} workers
 * @returns {import('./provider.js').Open}
 */
export const placed = (local, workers) => async (life, { worker, ...options }, heard) => {
  const reason = bound(options);
  const isPage = globalThis.document !== undefined;
  if (worker === false || (worker === undefined && (reason || !isPage))) return local(life, options, heard);
  if (worker === undefined) return anywhere(local, workers, life, options, heard);
  const make = wanted(worker, workers);
  if (reason) throw wrong(`${reason}, which keeps the client on this thread: leave \`worker\` out`);
  if (worker === 'shared' && hasFunctions(options)) throw wrong("an upstream is a function, which tabs cannot share: give 'dedicated'");
  return inWorker(make, 'client')(life, sent(options), heard);
};

/**
 * Places a development chain: on this thread by default. A chain belongs to one page, so that it is never in a shared worker.
 * @param {import('./provider.js').Open} local
 * @param {{dedicated: Function, address: Function}} workers
 * @returns {import('./provider.js').Open}
 */
export const placedChain = (local, workers) => async (life, { worker = false, ...options }, heard) => {
  if (worker === false) return local(life, options, heard);
  if (worker === 'shared') throw wrong("a chain belongs to one page: give 'dedicated'");
  const make = wanted(worker, workers);
  const reason = bound(options);
  if (reason) throw wrong(`${reason}, which keeps the chain on this thread: leave \`worker\` out`);
  return inWorker(make, 'chain')(life, sent(options), heard);
};
