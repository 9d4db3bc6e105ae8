// Stores verified headers of a light client between two visits, as numbered pages of bytes: in IndexedDB, in a directory (directory.js) or in a
// store of the caller. The WebAssembly module verifies the pages again, and ignores those that are damaged or belong to another chain.
//
// One client writes at a time: two that write the same chain at different speeds would truncate each other's pages. The
// others read, and the next one takes over when the writer is closed.
import { MAX_PAGE_BYTES, directory } from './directory.js';
import { localLocks } from './locks.js';
import { isBytes } from './message.js';
import { windowIn } from './window-pages.js';

/** Version of the page format. It is part of the store's name. */
const VERSION = 1;

/** Most pages that are read at once, about 70 kB each: bounds memory to about a megabyte, where a million headers are 15,000 pages. */
const MOST_AT_ONCE = 16;

/** Longest wait for the database in milliseconds: another page may hold it open for any time. */
const OPEN_TIMEOUT = 5_000;

/**
 * Bytes of pages that may wait to be written before synchronization waits for the store: the pages of a few rounds. Headers arrive
 * faster than slow stores write them, and 440,000 headers with their uncles, all waiting, would take a gigabyte of memory.
 */
const MOST_WAITING = 16 * 2 ** 20;

/** Longest wait for a store that writes nothing, in milliseconds. The client then continues without the store. */
const STALL_TIMEOUT = 30_000;

/**
 * The name of the store of a chain that a client may follow: a window's headers have another store than those above a checkpoint. Modules for tests also
 * accept a network as an object, which has a name.
 */
const nameOf = ({ network, checkpoint }, isWindow) =>
  `rootlight-v${VERSION}-${network?.name ?? network}-${isWindow ? WINDOW : checkpoint?.hash ?? 'newest'}`;

/** The last part of a window's name. */
const WINDOW = 'window';

/** Version, network and start in the name of a directory or database; undefined in any other name. */
function partsOf(name) {
  const [, version, network, start] = /^rootlight-v(\d+)-(.+)-(newest|window|0x[\da-f]{64})$/i.exec(name) ?? [];
  return network === undefined ? undefined : { version: Number(version), network, start };
}

/** Whether a name is that of an earlier version of the format. A later version may be in use by a page or a program that was updated first. */
const isFormer = (name) => (partsOf(name)?.version ?? VERSION) < VERSION;

/**
 * @typedef {object} WindowRecord
 * @property {Uint8Array} window what the module records of a window (`WindowRecord` of the core)
 * @property {Uint8Array} [bitcoin] Bitcoin's chain. If it is missing, the stored one is left as it is
 */

/**
 * @typedef {object} Pages
 * @property {() => Promise<number>} count the number of stored pages
 * @property {(index: number) => Promise<Uint8Array | undefined>} read the page of a number, undefined if it cannot be read
 * @property {(first: number, pages: Uint8Array[], record?: WindowRecord) => Promise<void>} save replaces all stored pages from this
 * number on, and the record of a window; never rejected
 * @property {() => Promise<WindowRecord | undefined>} record the stored record of a window
 * @property {() => Promise<void> | undefined} waitForSpace returns undefined if more pages may be passed to `save`, or a promise that resolves
 * when fewer bytes wait to be written
 * @property {() => Promise<void>} close writes what waits and ends this client's turn at writing; resolves when everything
 * is written
 */

/**
 * Opens the store of a client; undefined if nothing is to be stored.
 * @param {undefined | null | string | URL | {get: Function, put: Function}} store the caller's option
 * @param {{network: string, checkpoint?: {hash: string}}} config
 * @param {{onError?: (error: Error) => void, onTurn?: (first: number) => void, isWindow?: boolean}} [more] `onError` is called
 * for the first failure; `onTurn` when this client becomes the writer, with the first page that it did not write because another client was the
 * writer; `isWindow` says whether the pages are a window's
 * @returns {undefined | Pages}
 */
export function pagesIn(store, config, { isWindow = false, ...listeners } = {}) {
  const name = nameOf(config, isWindow);
  const lockedPages = (pageStore, locks) => pagesWithLock(isWindow ? windowIn(pageStore) : pageStore, locks, name, listeners);
  if (typeof store === 'string' || store instanceof URL) {
    const { pageStore, locks } = directory(store, name, isFormer);
    return lockedPages(pageStore, locks);
  }
  if (store) return lockedPages(keyed(store, name), locksOf(store));
  if (store === null || !hasDatabases(listeners)) return undefined;
  const shared = globalThis.navigator?.locks;
  return lockedPages(database(name, shared !== undefined), shared ? tidying(shared) : pageLocks);
}

/** Whether the runtime has IndexedDB. In a page that may not use it, even reading the property may throw. */
function hasDatabases({ onError }) {
  try {
    return Boolean(globalThis.indexedDB);
  } catch (error) {
    onError?.(error);
    return false;
  }
}

/** Web Locks. A client that gets one deletes the databases that no client uses any more, which would otherwise fill the site's quota. */
const tidying = (locks) => ({
  request: (name, options, work) =>
    locks.request(name, options, (lock) => {
      if (lock) void tidy(locks, name).catch(() => {});
      return work(lock);
    }),
});

/**
 * Deletes databases of earlier versions, and of other checkpoints of the network, unless a client uses them, which then holds their lock. The
 * database of a window is not deleted, and a client of a window deletes no other chain: what a window has proven must not be forgotten
 * because of a visit with another start.
 */
async function tidy(locks, own) {
  const ownParts = partsOf(own);
  for (const { name } of (await indexedDB.databases?.()) ?? []) {
    const found = partsOf(name);
    const isOther = name !== own && found?.version === ownParts?.version && found?.network === ownParts?.network;
    const isCheckpoint = [found, ownParts].every((parts) => parts && parts.start !== WINDOW);
    if (isFormer(name) || (isOther && isCheckpoint)) await locks.request(name, { ifAvailable: true }, (lock) => lock && deleteDatabase(name));
  }
}

/** Deletes a database. Resolves also if that fails: the next writer tries again. */
function deleteDatabase(name) {
  return new Promise((resolve) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = request.onerror = request.onblocked = resolve;
  });
}

/** Locks for browsers without Web Locks: only clients of the same page exclude each other. */
const pageLocks = localLocks();

/** The locks of each store of a caller. */
const locksByStore = new WeakMap();

/** Locks among clients to which the caller passed the same store. */
function locksOf(store) {
  if (!locksByStore.has(store)) locksByStore.set(store, localLocks());
  return locksByStore.get(store);
}

/**
 * Pages of which one client at a time is the writer, the one that has the lock.
 * @param {{read: (index: number, count: number) => Promise<unknown[]>, write: (first: number, pages: Uint8Array[]) => Promise<void>, close: () => void}} pageStore
 * where the pages are stored
 */
function pagesWithLock(pageStore, locks, name, { onError = warn, onTurn }) {
  /** The lowest page that was not written because another client was the writer. */
  let missed;
  /** Whether the store has failed. It is not used any more then. */
  let failed = false;
  /** Bytes that wait to be written. */
  let waiting = 0;
  /** How many saves were requested, how many of them have ended, and the functions to call when another one ends. */
  let [saves, saved] = [0, 0];
  const waiters = new Set();
  const turn = turnOf(locks, name, () => {
    const first = missed;
    missed = undefined;
    if (first !== undefined) onTurn?.(first);
  });
  /** Settles when the last requested save has ended. */
  let last = turn.asked.catch(fail);

  /** Gives up the store, and reports the first failure. */
  function fail(error) {
    if (failed) return;
    failed = true;
    wake();
    // Browsers give no message when the storage is full.
    onError(new Error(`verified headers are not kept: ${error?.message || error?.name || error}`));
  }

  const isFull = () => waiting > MOST_WAITING;

  function wake() {
    for (const resume of waiters) resume();
  }

  /** Resolves when the store is not `busy` any more, or has failed. A store that writes nothing for long has failed. */
  async function whileBusy(busy) {
    while (busy() && !failed) {
      const before = saved;
      await new Promise((resolve) => {
        const resume = () => {
          clearTimeout(timer);
          waiters.delete(resume);
          resolve();
        };
        const timer = setTimeout(() => {
          if (saved === before) fail(new Error(`nothing was written for ${STALL_TIMEOUT / 1000} s`));
          resume();
        }, STALL_TIMEOUT);
        timer.unref?.();
        waiters.add(resume);
      });
    }
  }

  /** Writes pages if this client is the writer. */
  async function write(first, pages, record) {
    if (failed) return;
    if (turn.isOurs()) await pageStore.write(first, pages, record);
    else missed = Math.min(missed ?? first, first);
  }

  /** The pages that were read last, with the number of the first one. */
  let readAhead = NONE;

  return {
    count: () => pageStore.count().catch((error) => (fail(error), 0)),
    record: async () => pageStore.record?.().catch((error) => void fail(error)),
    async read(index) {
      try {
        if (!(index - readAhead.first in readAhead.pages)) {
          // Pages that are requested in order are read 1, 2, 4, 8, 16 at a time.
          const step = index === readAhead.first + readAhead.step ? Math.min(2 * readAhead.step, MOST_AT_ONCE) || 1 : 1;
          readAhead = { first: index, step, pages: await pageStore.read(index, step) };
        }
      } catch (error) {
        fail(error);
      }
      const page = readAhead.pages[index - readAhead.first];
      return isPage(page) ? page : undefined;
    },
    // Writes run one after the other. After a failed write nothing more is written, since pages build on each other.
    save(first, pages, record) {
      readAhead = NONE;
      if (failed) return last;
      const bytes = pages.reduce((sum, page) => sum + page.length, 0);
      waiting += bytes;
      saves += 1;
      const written = () => {
        waiting -= bytes;
        saved += 1;
        wake();
      };
      return (last = last.then(() => write(first, pages, record)).catch(fail).then(written));
    },
    waitForSpace: () => (isFull() && !failed ? whileBusy(isFull) : undefined),
    async close() {
      // Waiting data is written before the next client becomes the writer, unless the store writes nothing for long.
      await turn.asked.catch(() => {});
      if (turn.isOurs()) await whileBusy(() => saved < saves);
      const released = turn.end();
      await last;
      await released;
      await pageStore.close();
    },
  };
}

/** The default listener to failures. */
function warn(error) {
  console.warn(`rootlight: ${error.message}`);
}

/** A client's turn at being the writer: requested at once, and awaited if another client has it. `onTurn` is called after waiting. */
function turnOf(locks, name, onTurn) {
  const end = new AbortController();
  let ours = false;
  /** Holds the lock until the end. */
  const take = () => {
    ours = true;
    return new Promise((release) => {
      if (end.signal.aborted) release();
      else end.signal.addEventListener('abort', release);
    });
  };
  /** The requests for the lock, which settle once it is released. */
  const requests = [];
  /** Waits for the lock. */
  const wait = () => {
    const request = locks.request(name, { signal: end.signal }, () => {
      const taken = take();
      onTurn();
      return taken;
    });
    requests.push(request.catch(() => {}));
  };
  const asked = new Promise((resolve, reject) => {
    const request = locks.request(name, { ifAvailable: true }, (lock) => {
      resolve();
      return lock ? take() : void wait();
    });
    requests.push(request.catch(reject));
  });
  return {
    /** Resolves when it is known whether this client is the writer from the start. */
    asked,
    isOurs: () => ours && !end.signal.aborted,
    /** Ends the turn. Resolves when the lock is released, if it was ours. */
    end() {
      end.abort();
      return ours ? Promise.all(requests) : undefined;
    },
  };
}

/** The initial value: no pages were read. */
const NONE = { first: 0, step: 0, pages: [] };

/** Whether a stored value may be a page. */
const isPage = (page) => isBytes(page) && page.length > 0 && page.length <= MAX_PAGE_BYTES;

/** Most pages that are counted: 67 million headers. Bounds the search in a store that returns a page for every key. */
const MOST_PAGES = 2 ** 20;

/** Pages in the caller's store, which is a map of texts to bytes. An empty value after the last page marks the end. */
function keyed(store, name) {
  const key = (index) => `${name}/${index}`;
  const has = async (index) => isPage(await store.get(key(index)));
  return {
    // The caller's store does not list its keys. The end is searched in steps that double, then by bisection.
    async count() {
      let [low, high] = [0, 1];
      while (high < MOST_PAGES && (await has(high - 1))) [low, high] = [high, high * 2];
      while (low + 1 < high) {
        const middle = (low + high) >> 1;
        if (await has(middle - 1)) low = middle;
        else high = middle;
      }
      return low;
    },
    async read(index) {
      return [await store.get(key(index))];
    },
    async write(first, pages) {
      // Pages that would follow a gap are not written.
      if (first > 0 && !(await store.get(key(first - 1)))?.length) return;
      for (const [offset, page] of [...pages, new Uint8Array(0)].entries()) await store.put(key(first + offset), page);
    },
    /** Writes values under numbers, as windows need it. */
    async put(entries) {
      for (const [index, value] of entries) await store.put(key(index), value);
    },
    close() {},
  };
}

/** Pages in IndexedDB. Each change is one transaction. `alone` means that Web Locks keep other pages from writing at the same time. */
function database(name, alone) {
  let opening;
  const open = () => (opening ??= opened(name));
  /** Begins a transaction. */
  const begun = async (mode) => {
    const former = open();
    const db = await former;
    try {
      return db.transaction(PAGES, mode);
    } catch (error) {
      // The browser has closed the database, or this page has closed it for another page that deletes it: it is opened once more.
      if (error.name !== 'InvalidStateError') throw error;
      if (opening === former) opening = undefined;
      return (await open()).transaction(PAGES, mode);
    }
  };
  const inStore = async (mode) => {
    const transaction = await begun(mode);
    return { transaction, store: transaction.objectStore(PAGES) };
  };
  const got = (store, index) => {
    const request = store.get(index);
    return done(request, 'success', () => request.result);
  };
  return {
    async count() {
      const { store } = await inStore('readonly');
      const request = store.openKeyCursor(null, 'prev');
      const last = await done(request, 'success', () => request.result?.key);
      return Number.isSafeInteger(last) && last < MOST_PAGES ? last + 1 : 0;
    },
    async read(index, count) {
      const { store } = await inStore('readonly');
      return Promise.all(Array.from({ length: count }, (_, offset) => got(store, index + offset)));
    },
    async write(first, pages) {
      const { transaction, store } = await inStore('readwrite');
      const committed = done(transaction, 'complete');
      const end = first + pages.length;
      // Whether the page before the first one is stored: pages must have no gap.
      const links = first === 0 || (await got(store, first - 1)) !== undefined;
      // Without locks a page writes only if no other page has stored more, so that none truncates what another wrote.
      const leads = alone || pages.length === 0 || (await got(store, end)) === undefined;
      if (links && leads) {
        store.delete(IDBKeyRange.lowerBound(end));
        pages.forEach((page, offset) => store.put(page, first + offset));
      }
      await committed;
    },
    async put(entries) {
      const { transaction, store } = await inStore('readwrite');
      const committed = done(transaction, 'complete');
      for (const [index, value] of entries) store.put(value, index);
      await committed;
    },
    close: () => opening?.then((db) => db.close(), () => {}),
  };
}

/** The name of the object store in the database. */
const PAGES = 'pages';

/** Opens a database. */
async function opened(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(PAGES);
  const db = await inTime(request);
  // Another page wants to delete or upgrade the database.
  db.onversionchange = () => db.close();
  return db;
}

/** Waits for the database that a request opens; fails if other pages prevent it from opening. */
async function inTime(request) {
  let timer;
  const refused = new Promise((_, reject) => {
    const words = (reason) => () => reject(new Error(`${reason}: close other pages of this site`));
    timer = setTimeout(words(`the database did not open within ${OPEN_TIMEOUT / 1000} s`), OPEN_TIMEOUT);
    request.onblocked = words('another page holds the database open in an older version');
  });
  const opening = done(request, 'success', () => request.result);
  try {
    return await Promise.race([opening, refused]);
  } catch (error) {
    // If the database opens later, it is closed again, so that it does not block other pages.
    opening.then((db) => db.close(), () => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when an event of IndexedDB occurs, with the result; rejects at an error. */
function done(target, event, result = () => undefined) {
  return new Promise((resolve, reject) => {
    target[`on${event}`] = () => resolve(result());
    target.onerror = target.onabort = () => reject(target.error);
  });
}
