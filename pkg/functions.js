// Upstreams that are functions of the page, for a client in a worker: the function stays in the page, and each exchange crosses
// as two messages. In the options, which cross as JSON, null stands for a function.

/**
 * The side of the page: calls the functions. Returns what to do with messages of the worker, by their type.
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
        post({ type: 'exchanged', id, error: failed(error) });
      }
    },
    watch({ upstream }) {
      upstreams[upstream].heads?.(() => post({ type: 'head', upstream }));
    },
  };
}

/** A transport's error as a client reads it, in a form that can be copied. */
function failed(error) {
  const text = typeof error === 'string' ? error : error?.message;
  const pause = error?.retryAfter;
  return { message: typeof text === 'string' ? text : undefined, retryAfter: pause === undefined ? undefined : Number(pause ?? NaN) };
}

/** Whether a function of the page is among the upstreams of these options, as they have crossed. */
export const hasFunctions = ({ upstreams }) => Array.isArray(upstreams) && upstreams.includes(null);

/**
 * The side of the worker. `restored` puts transports in the place of functions; `messages` is what to do with messages of
 * the page, by their type.
 * @param {(message: object) => void} post
 */
export function functionsOf(post) {
  const waiting = new Map();
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
