// Upstreams that are functions of the page, for a client in a worker: the function stays in the page, and the worker calls it by two messages,
// `exchange` and `exchanged`. In the options, which are sent as JSON, null stands for a function.

/**
 * The page's side: calls the functions. Returns what to do with each type of message of the worker.
 * @param {unknown[]} upstreams
 * @param {{postMessage: (message: object) => void}} port
 */
export function functionsFor(upstreams = [], port) {
  const post = (message) => port.postMessage(message);
  return {
    async exchange({ id, upstream, body }) {
      try {
        post({ type: 'exchanged', id, bytes: await upstreams[upstream](body) });
      } catch (error) {
        post({ type: 'exchanged', id, error: copyOfError(error) });
      }
    },
    /** The client wants to know when the node announces a block. */
    watch({ upstream }) {
      upstreams[upstream].heads?.(() => post({ type: 'head', upstream }));
    },
  };
}

/** The parts of a transport's error that exchange.js reads, in an object that can be copied to the worker. */
function copyOfError(error) {
  const text = typeof error === 'string' ? error : error?.message;
  const pause = error?.retryAfter;
  return { message: typeof text === 'string' ? text : undefined, retryAfter: pause === undefined ? undefined : Number(pause ?? NaN) };
}

/** Whether a function of the page is among the upstreams of these options, as the worker gets them. */
export const hasFunctions = ({ upstreams }) => Array.isArray(upstreams) && upstreams.includes(null);

/**
 * The worker's side. `restored` puts transports in the place of functions; `messages` has what to do with each type of message of
 * the page.
 * @param {(message: object) => void} post
 */
export function functionsOf(post) {
  /** Exchanges without a response, by id. */
  const waiting = new Map();
  /** Listeners to new blocks, by the number of the upstream. */
  const listeners = new Map();
  let next = 0;

  function transport(upstream) {
    const exchange = (body) =>
      new Promise((resolve, reject) => {
        next += 1;
        waiting.set(next, { resolve, reject });
        post({ type: 'exchange', id: next, upstream, body });
      });
    const heads = (listener) => {
      listeners.set(upstream, listener);
      post({ type: 'watch', upstream });
    };
    return Object.assign(exchange, { heads });
  }

  return {
    restored: ({ upstreams, ...options }) => ({ ...options, upstreams: upstreams.map((one, index) => one ?? transport(index)) }),
    messages: {
      exchanged({ id, bytes, error }) {
        const call = waiting.get(id);
        waiting.delete(id);
        if (error) call?.reject(error);
        else call?.resolve(bytes);
      },
      head: ({ upstream }) => listeners.get(upstream)?.(),
    },
  };
}
