// Locks among clients of one process, with as much of the Web Locks API as store.js uses.

export function localLocks() {
  /** By name, what resolves when the lock is free. */
  const held = new Map();

  return {
    /** Does some work while it holds a lock; with `ifAvailable` it does not wait, and the work is given null. */
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
