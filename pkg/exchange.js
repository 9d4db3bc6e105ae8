// One exchange with an upstream as the module wants it: a few at a time, with an end, and without secrets in its words.

/**
 * Exchanges with one upstream under way at once, for questions of callers; synchronization has as many of its own, so
 * that it never waits for them. An exchange counts until the module has taken its answer: answers of up to 32 MiB that
 * wait there are what takes memory outside the module.
 */
const PARALLEL = 4;

/** Longest exchange in milliseconds, for transports without a limit of their own: those of this package end after 20 s. */
const LONGEST = 60_000;

/** Longest text taken over from a failed exchange, in characters. */
const MAX_REASON = 200;

/** An address in a text: what comes after its host may hold a password or a key. */
const ADDRESS = /\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/?#"'<>]*@)?([^\s/?#"'<>@]*)[^\s"'<>]*/gi;

/** Longest text that is looked through for addresses. */
const MAX_TEXT = 2_000;

/** A text without the secrets of addresses in it: `https://user:password@host/key` becomes `https://host`. */
export function withoutSecrets(text) {
  // Cut between words: half an address could end within a password.
  const short = text.length > MAX_TEXT ? text.slice(0, MAX_TEXT).replace(/\S*$/, '') : text;
  return short.replaceAll(ADDRESS, '$1$2');
}

/** The module's words for a transport's failure: a number of seconds where the upstream asks for a pause, else a text. */
function reasonOf(error) {
  const pause = error?.retryAfter;
  if (pause !== undefined) return pause ?? NaN;
  const text = typeof error === 'string' ? error : error?.message;
  const words = withoutSecrets(typeof text === 'string' ? text : 'unknown failure');
  return [...words.replaceAll(/\p{Cc}/gu, '')].slice(0, MAX_REASON).join('');
}

/**
 * @param {(body: string) => Promise<Uint8Array>} transport
 * @param {ReturnType<typeof import('./life.js').newLife>} life
 * @param {() => Promise<void> | undefined} [room] what synchronization waits for before it asks for more
 * @returns {(body: string, following: boolean) => Promise<string | number | (() => Uint8Array)>}
 */
export function exchangeOver(transport, life, room = () => undefined) {
  const lines = [line(PARALLEL), line(PARALLEL)];
  return async (body, following) => {
    const { enter, leave } = lines[Number(following)];
    let bytes;
    try {
      await life.run(enter, true);
      const full = following ? room() : undefined;
      if (full) await life.run(() => full, true);
      bytes = await life.run(() => inTime(() => transport(body)), true);
      if (!(bytes instanceof Uint8Array)) throw new Error('the transport gave no Uint8Array');
    } catch (error) {
      leave();
      return reasonOf(error);
    }
    return () => {
      leave();
      return bytes;
    };
  };
}

/** A line before so many places; who comes first enters first. */
function line(places) {
  const waiting = [];
  return {
    enter: () =>
      new Promise((resolve) => {
        places -= 1;
        if (places >= 0) resolve();
        else waiting.push(resolve);
      }),
    leave: () => {
      places += 1;
      waiting.shift()?.();
    },
  };
}

/** Some work, given up after a while. */
function inTime(work) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer in ${LONGEST / 1000} s`)), LONGEST);
    timer.unref?.();
    const over = (how) => (value) => {
      clearTimeout(timer);
      how(value);
    };
    // What is thrown at once is a rejection too.
    new Promise((done) => done(work())).then(over(resolve), over(reject));
  });
}
