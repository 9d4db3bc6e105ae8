// Locks among the clients of one process, with the part of the Web Locks API that store.js uses. For browsers without that API, and for
// stores of the caller.

/** Makes a set of locks. */
export function localLocks() {
  /** For each held lock, by name, a promise that resolves when the lock is free. */
  const held = new Map();

  return {
    /** Runs some work while holding a lock. With `ifAvailable` it does not wait: the work gets null if the lock is held. */
    async request(name, { ifAvailable, signal }, work) {
      while (held.has(name)) {
        if (ifAvailable) return work(null);
        await held.get(name);
        signal?.throwIfAborted();
      }
      const done = (async () => work({ name }))();
      const free = () => void held.delete(name);
      held.set(name, done.then(free, free));
      return done;
    },
  };
}
