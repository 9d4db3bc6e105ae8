// The page's side of clients and development chains that run in a worker. host.js is the worker's side.
import { functionsFor } from './functions.js';
import { disconnected, newLife } from './life.js';
import { listen, signOfLife, unpacked, watch } from './ports.js';

/** Longest wait for the first message of a worker, in milliseconds. A worker that the page's security policy blocks sends none. */
const START_TIMEOUT = 10_000;

/** Longest wait for a dedicated worker that writes its last headers, in milliseconds. */
const CLOSE_TIMEOUT = 5_000;

/** The error of a worker that did not start. The client may be opened elsewhere. */
export class NotStarted extends Error {}

/** The error of a worker that is gone. */
const gone = () => disconnected('the worker has ended; create a new provider');

/**
 * Returns a function that opens a client or a chain in a worker.
 * @param {() => object | Promise<object>} make makes the worker: a Worker, a SharedWorker, or a worker thread of Node.js
 * @param {'client' | 'chain'} kind
 * @returns {import('./provider.js').Open}
 */
export const inWorker = (make, kind) => async (life, options, callbacks) => {
  /** The life of the worker, as far as this page uses it. A worker that does not start ends alone, because `life` then goes on elsewhere. */
  const end = newLife();
  const { port, first } = await start(make, end);
  const calls = newCalls();
  // The page's lock is released at the end.
  const released = new Promise((resolve) => end.onEnd(resolve));
  const over = (error) => life.end(error);
  const opened = new Promise((resolve, reject) => {
    const handlers = {
      opened: ({ methods }) => resolve(methods),
      failed: ({ error }) => reject(unpacked(error)),
      answer: calls.settle,
      changed: callbacks.changed,
      progress: ({ progress }) => callbacks.progress?.(progress),
      storeError: ({ message }) => callbacks.storeError ? callbacks.storeError(new Error(message)) : console.warn(`rootlight: ${message}`),
      connection: ({ reason }) => callbacks.connection?.(reason),
      ended: ({ error }) => over(unpacked(error)),
      ...functionsFor(options.upstreams, port),
    };
    listen(port, 'message', ({ data }) => handlers[data?.type]?.(data));
  });
  // Without this a rejection before `opened` is awaited would be reported as unhandled.
  opened.catch(() => {});
  for (const event of ['close', 'exit']) listen(port, event, () => over(gone()));
  life.onEnd(() => end.end());
  watch(first.lock, signalOf(end), () => over(gone()));
  port.postMessage({ type: 'open', kind, options: JSON.stringify(options), lock: await signOfLife('page', released) });
  const methods = await life.run(() => opened);
  return {
    methods,
    send(text, quiet, method) {
      // Only a string: another object of the caller may not be copyable.
      const asked = { type: 'ask', text, quiet, method: typeof method === 'string' ? method : undefined };
      return life.run(() => calls.ask((id) => port.postMessage({ ...asked, id })), quiet);
    },
    takeChanged: calls.takeChanged,
  };
};

/** Starts a worker, and waits for its first message. The worker ends with the life `end`. */
async function start(make, end) {
  let worker;
  try {
    worker = await make();
  } catch (error) {
    throw new NotStarted(`the worker cannot be started: ${error.message}`);
  }
  const port = worker.port ?? worker;
  end.onEnd(() => leave(worker, port));
  let timer;
  const first = new Promise((resolve, reject) => {
    const failed = (reason) => reject(new NotStarted(`the worker did not start: ${reason}`));
    listen(port, 'message', ({ data }) => data?.type === 'hello' && resolve(data));
    listen(worker, 'error', ({ message }) => failed(message || 'its file could not be loaded'));
    timer = setTimeout(() => failed(`it was silent for ${START_TIMEOUT / 1000} s`), START_TIMEOUT);
    port.start?.();
    port.postMessage({ type: 'hello' });
  });
  try {
    const message = await first;
    // A thread must not keep Node.js running. Called before the first message, `unref` would not suffice, because of the thread's port.
    worker.unref?.();
    return { port, first: message };
  } catch (error) {
    end.end();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Leaves a shared worker. Ends a dedicated worker or a thread once it has written its last headers. */
function leave(worker, port) {
  port.postMessage({ type: 'close' });
  if (typeof worker.terminate !== 'function') return port.close();
  const terminate = () => void worker.terminate();
  listen(port, 'message', ({ data }) => data?.type === 'closed' && terminate());
  setTimeout(terminate, CLOSE_TIMEOUT).unref?.();
  return undefined;
}

/** A signal that aborts at the end of a life. */
function signalOf(life) {
  const controller = new AbortController();
  life.onEnd(() => controller.abort());
  return controller.signal;
}

/** The calls to the worker: those that wait for an answer, and whether answers have reported a changed chain. */
function newCalls() {
  const waiting = new Map();
  let next = 0;
  let changed = false;
  return {
    ask: (post) =>
      new Promise((resolve, reject) => {
        next += 1;
        waiting.set(next, { resolve, reject });
        post(next);
      }),
    settle({ id, text, error, changed: hasChanged }) {
      const call = waiting.get(id);
      waiting.delete(id);
      changed ||= hasChanged;
      if (error) call?.reject(unpacked(error));
      else call?.resolve(text);
    },
    takeChanged() {
      const wasChanged = changed;
      changed = false;
      return wasChanged;
    },
  };
}
