// The lifetime of a provider and its pending calls. When the provider ends, for whatever reason, all pending calls
// are rejected.

/** The error code of EIP-1193 for a provider that is disconnected from all chains. */
export const DISCONNECTED = 4900;

/** The longest delay that timers accept, in milliseconds: a longer one would end at once. */
const MAX_DELAY = 2 ** 31 - 1;

/** An error with a code, as EIP-1193 requires. */
export const failure = (code, message) => Object.assign(new Error(message), { code });

/** The error of a provider that has ended. */
export const disconnected = (message) => failure(DISCONNECTED, message);

/**
 * The lifetime of one provider. Pending calls keep Node.js running, by a timer. The provider's other timers do not, so without that one
 * a script that awaits an answer would exit between two exchanges.
 */
export function newLife() {
  /** The functions that reject the pending calls. */
  const rejecters = new Set();
  /** Work for the end. */
  const ends = [];
  /** An object with the reason, once the provider has ended. */
  let ended;
  /** The timer that keeps Node.js running while calls are pending. */
  let running;
  /** Number of pending calls that are not quiet. */
  let pending = 0;
  /** The reason with which the provider ends as soon as nothing is pending. */
  let leaving;

  /** Changes the number of pending calls. */
  function count(change) {
    pending += change;
    if (pending > 0) running ??= setInterval(() => {}, MAX_DELAY);
    else running = clearInterval(running);
  }

  function end(reason) {
    if (ended) return;
    ended = { reason };
    for (const reject of [...rejecters]) reject(reason);
    for (const work of ends.splice(0)) work(reason);
  }

  /** Ends the provider if that is due: see `endWhenIdle`. */
  const endIfIdle = () => leaving && pending === 0 && end(leaving);

  /** See `run` of the returned object. */
  function run(work, quiet = false) {
    if (ended) return Promise.reject(ended.reason);
    return new Promise((resolve, reject) => {
      const settle = (how) => (value) => {
        // False if the call has been settled before.
        if (!rejecters.delete(fail)) return;
        if (!quiet) count(-1);
        how(value);
        endIfIdle();
      };
      const fail = settle(reject);
      rejecters.add(fail);
      if (!quiet) count(1);
      try {
        Promise.resolve(work()).then(settle(resolve), fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  return {
    /** The reason for the end; undefined before the end. */
    get reason() {
      return ended?.reason;
    },
    get isOver() {
      return ended !== undefined;
    },
    /**
     * Runs some work. The promise settles as the work does, or is rejected when the provider ends. `quiet` work does
     * not keep Node.js running.
     * @template T
     * @param {() => T | Promise<T>} work
     * @returns {Promise<T>}
     */
    run,
    /**
     * As `run`, but if the work returns no promise, neither does this: most calls are answered at once, and a promise and a timer
     * for each would take as long as the answer.
     * @template T
     * @param {() => T | Promise<T>} work
     * @returns {T | Promise<T>}
     */
    now(work, quiet) {
      if (ended) return Promise.reject(ended.reason);
      const value = work();
      // The work may have ended the provider.
      if (ended) return Promise.reject(ended.reason);
      return value instanceof Promise ? run(() => value, quiet) : value;
    },
    /** Registers work for the end; runs it at once if the provider has ended. Work runs in the order of registration. */
    onEnd(work) {
      if (ended) work(ended.reason);
      else ends.push(work);
    },
    /** Ends the provider and rejects all pending calls with the reason. Later calls have no effect. */
    end,
    /** Ends the provider once no call is pending. `quiet` work does not count. */
    endWhenIdle(reason) {
      leaving = reason;
      endIfIdle();
    },
  };
}

/** Ends a provider when the caller's signal aborts or the time is over. Returns a function that cancels this. */
export function limited(life, signal, timeout) {
  const abort = () => life.end(signal.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  const words = `not connected within ${timeout} ms`;
  const timer = timeout == null ? undefined : setTimeout(() => life.end(disconnected(words)), Math.min(timeout, MAX_DELAY));
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  };
}
