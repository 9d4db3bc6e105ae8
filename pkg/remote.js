// A client or a chain in a worker, as the page sees it. host.js is the other side.
import { functionsFor } from './functions.js';
import { disconnected, newLife } from './life.js';
import { listen, signOfLife, unpacked, watch } from './ports.js';

/** Longest wait for the first message of a worker, in milliseconds. A worker that a policy blocks sends none. */
const STARTING = 10_000;

/** Longest wait for a dedicated worker that writes its last headers, in milliseconds. */
const CLOSING = 5_000;

/** The error of a worker that did not start. The client may be opened elsewhere. */
export class NotStarted extends Error {}

/** The error of a worker that is gone. */
const gone = () => disconnected('the worker has ended; create a new provider');

/**
 * @param {() => object | Promise<object>} make makes the worker: a Worker, a SharedWorker, or a worker thread of Node.js
 * @param {'client' | 'chain'} kind
 * @returns {import('./provider.js').Open}
 */
export const inWorker = (make, kind) => async (life, options, heard) => {
  /** Ends what was started here, also after a failed start, when `life` goes on. */
  const end = newLife();
  const { port, first } = await start(make, end);
  const calls = newCalls();
  const released = new Promise((resolve) => end.onEnd(resolve));
  const over = (error) => life.end(error);
  const opened = new Promise((resolve, reject) => {
    const heardHere = {
      opened: ({ methods }) => resolve(methods),
      failed: ({ error }) => reject(unpacked(error)),
      answer: calls.settle,
      changed: heard.changed,
      progress: ({ progress }) => heard.progress?.(progress),
      storeError: ({ message }) => heard.storeError ? heard.storeError(new Error(message)) : console.warn(`rootlight: ${message}`),
      connection: ({ reason }) => heard.connection?.(reason),
      ended: ({ error }) => over(unpacked(error)),
      ...functionsFor(options.upstreams, port),
    };
    listen(port, 'message', ({ data }) => heardHere[data?.type]?.(data));
  });
  opened.catch(() => {});
  for (const event of ['close', 'exit']) listen(port, event, () => over(gone()));
  life.onEnd(() => end.end());
  watch(first.lock, signalOf(end), () => over(gone()));
  port.postMessage({ type: 'open', kind, options: JSON.stringify(options), lock: await signOfLife('page', released) });
  const methods = await life.run(() => opened);
  return {
    methods,
    send(text, quiet, method) {
      // A caller's own object may not cross.
      const asked = { type: 'ask', text, quiet, method: typeof method === 'string' ? method : undefined };
      return life.run(() => calls.ask((id) => port.postMessage({ ...asked, id })), quiet);
    },
    takeChanged: calls.takeChanged,
  };
};

/** Starts a worker, and waits for its first message. It ends with `end`. */
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
    timer = setTimeout(() => failed(`it was silent for ${STARTING / 1000} s`), STARTING);
    port.start?.();
    port.postMessage({ type: 'hello' });
  });
  try {
    const message = await first;
    // A thread does not keep Node.js running; its port does if this comes earlier.
    worker.unref?.();
    return { port, first: message };
  } catch (error) {
    end.end();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Leaves a shared worker; ends another one once it has written its last headers. */
function leave(worker, port) {
  port.postMessage({ type: 'close' });
  if (typeof worker.terminate !== 'function') return port.close();
  const terminate = () => void worker.terminate();
  listen(port, 'message', ({ data }) => data?.type === 'closed' && terminate());
  setTimeout(terminate, CLOSING).unref?.();
  return undefined;
}

function signalOf(life) {
  const controller = new AbortController();
  life.onEnd(() => controller.abort());
  return controller.signal;
}

/** The calls that wait for an answer of the worker. */
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
    settle({ id, text, error, changed: news }) {
      const call = waiting.get(id);
      waiting.delete(id);
      changed ||= news;
      if (error) call?.reject(unpacked(error));
      else call?.resolve(text);
    },
    takeChanged() {
      const news = changed;
      changed = false;
      return news;
    },
  };
}
