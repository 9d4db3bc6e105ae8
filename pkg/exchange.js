// Wraps the transport of an upstream as the function that the module calls for each exchange: with a time limit, and with secrets removed from
// errors. The module limits the number of exchanges that run at the same time (pkg/wasm/src/queue.rs).

import { isBytes } from './message.js';
import { masked, withoutSecrets } from './secrets.js';
import { TIME_OVER } from './upstream-words.js';

/** Longest exchange in milliseconds, for transports without a limit of their own. The package's own transports end an exchange after 20 s. */
const MAX_TIME = 60_000;

/** Longest error text of a failed exchange that is passed on, in characters; the rest is cut off. */
const MAX_REASON_LENGTH = 200;

/**
 * Milliseconds for which an upstream must have failed before it counts as gone. One lost response, or several exchanges that fail
 * at the same moment, do not show that the network is down.
 */
const SILENCE = 1_000;

/**
 * A transport's failure in the form that the module expects: a number of seconds if the upstream asks for a pause, NaN if it names no time,
 * otherwise a text without control characters.
 */
function reasonOf(error, mask, explain) {
  const pause = error?.retryAfter;
  if (pause !== undefined) return pause ?? NaN;
  const text = typeof error === 'string' ? error : explain(error);
  const words = mask(typeof text === 'string' ? text : 'unknown failure');
  return [...words.replaceAll(/\p{Cc}/gu, '')].slice(0, MAX_REASON_LENGTH).join('');
}

/**
 * Watches whether any upstream answers. `tell` is called with the reason of the last failure once all of them have failed for {@link SILENCE},
 * and without one as soon as one answers again.
 * @param {string[]} names those of the upstreams
 * @param {(reason?: string) => void} tell
 * @returns {(index: number) => (reason?: string) => void} for each upstream, what its exchanges report: a failure, or a response
 */
export function connection(names, tell) {
  /** When each upstream began to fail, in milliseconds of the monotonic clock; undefined while it answers. */
  const since = names.map(() => undefined);
  let isLost = false;
  return (index) => (reason) => {
    const now = performance.now();
    since[index] = reason === undefined ? undefined : since[index] ?? now;
    const isGone = since.every((begin) => begin !== undefined && (isLost || now - begin >= SILENCE));
    if (isGone === isLost) return;
    isLost = isGone;
    tell(reason === undefined ? undefined : `${names[index]}: ${reason}`);
  };
}

/**
 * The exchange function of an upstream. It resolves to the bytes of the response, or to what {@link reasonOf} makes of a failure; it is never
 * rejected. `following` says that the requests are those of synchronization.
 * @param {(body: string) => Promise<Uint8Array>} transport
 * @param {ReturnType<typeof import('./life.js').newLife>} life
 * @param {() => Promise<void> | undefined} [waitForStore] returns a promise if the store is full, which synchronization awaits before its next request
 * @param {(reason?: string) => void} [report] called with the reason of each failure, and without one for a response: see {@link connection}
 * @param {(text: string) => string} [mask] removes the secrets of the upstream's address from its words
 * @param {(error: unknown) => string} [explain] says why an exchange failed
 * @returns {(body: string, following: boolean) => Promise<string | number | Uint8Array>}
 */
export function exchangeOver(transport, life, waitForStore = () => undefined, report = () => {}, mask = withoutSecrets, explain = (error) => error?.message) {
  return async (body, following) => {
    let bytes;
    try {
      const untilStored = following ? waitForStore() : undefined;
      if (untilStored) await life.run(() => untilStored, true);
      bytes = await life.run(() => inTime(() => transport(body)), true);
      if (!isBytes(bytes)) throw new Error('the transport did not return a Uint8Array');
      bytes = masked(bytes, mask);
    } catch (error) {
      const reason = reasonOf(error, mask, explain);
      // A number: the node asks for a pause, so that it is not gone.
      if (typeof reason === 'string') report(reason);
      return reason;
    }
    report();
    return bytes;
  };
}

/** Runs some work with a time limit. */
function inTime(work) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(TIME_OVER)), MAX_TIME);
    timer.unref?.();
    const over = (how) => (value) => {
      clearTimeout(timer);
      how(value);
    };
    // Within a promise, so that an exception of the work becomes a rejection too.
    new Promise((done) => done(work())).then(over(resolve), over(reject));
  });
}
