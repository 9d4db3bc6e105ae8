// How long a provider lives, and what is under way in it: whatever ends it, nobody waits for ever.

/** EIP-1193: the provider is disconnected from all chains. */
const DISCONNECTED = 4900;

/** Longest interval that timers take, in milliseconds. */
const LONGEST = 2 ** 31 - 1;

/** An error as EIP-1193 wants it. */
export const failure = (code, message) => Object.assign(new Error(message), { code });

/** What a provider says that has ended. */
export const disconnected = (message) => failure(DISCONNECTED, message);

/**
 * The life of one provider. While something of the caller's is under way, Node.js is kept running: what the provider
 * itself waits with does not, and a script that awaits an answer would end in silence between two exchanges.
 */
export function newLife() {
  /** What ends each wait that is under way. */
  const waits = new Set();
  const ends = [];
  let ended;
  let running;
  let held = 0;

  function hold(more) {
    held += more;
    if (held > 0) running ??= setInterval(() => {}, LONGEST);
    else running = clearInterval(running);
  }

  return {
    /** Why it has ended; undefined while it goes on. */
    get reason() {
      return ended?.reason;
    },
    get isOver() {
      return ended !== undefined;
    },
    /**
     * Does some work, and settles as it does, or is rejected once this life ends. `quiet` work is not the caller's.
     * @template T
     * @param {() => T | Promise<T>} work
     * @returns {Promise<T>}
     */
    run(work, quiet = false) {
      if (ended) return Promise.reject(ended.reason);
      return new Promise((resolve, reject) => {
        const settle = (how) => (value) => {
          if (!waits.delete(end)) return;
          if (!quiet) hold(-1);
          how(value);
        };
        const end = settle(reject);
        waits.add(end);
        if (!quiet) hold(1);
        try {
          Promise.resolve(work()).then(settle(resolve), end);
        } catch (error) {
          end(error);
        }
      });
    },
    /** Does something at the end, or at once if that is over; the first registered comes first. */
    onEnd(work) {
      if (ended) work(ended.reason);
      else ends.push(work);
    },
    /** Ends it, for a reason that all who wait are given. Only the first end counts. */
    end(reason) {
      if (ended) return;
      ended = { reason };
      for (const wait of [...waits]) wait(reason);
      for (const work of ends.splice(0)) work(reason);
    },
  };
}

/** Ends a life when the caller's signal says so, or when its time is over; returns what stops waiting for that. */
export function limited(life, signal, timeout) {
  const abort = () => life.end(signal.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  const words = `not connected within ${timeout} ms`;
  const timer = timeout == null ? undefined : setTimeout(() => life.end(disconnected(words)), Math.min(timeout, LONGEST));
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  };
}
