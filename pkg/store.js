// Where a light client keeps verified headers between two visits. They come and go as numbered pages of bytes; what
// they are worth is decided by the WebAssembly module, which ignores pages that are damaged or about something else.
//
// One client writes at a time: two that write the same chain at different speeds would cut off each other's pages. The
// others read, and the next one takes over when the writer is closed.
import { localLocks } from './locks.js';

/** Version of the pages. Others have other names. */
const VERSION = 1;

/** Pages that are read at once, some 70 kB each: a million headers are 15,000 pages. */
const STEP = 16;

/** Longest wait for the database in milliseconds: another page may hold it for as long as it likes. */
const OPENING = 5_000;

/**
 * Bytes of pages that may wait to be written before synchronization waits for the store: a few of its rounds. Headers come
 * faster than slow stores take them, and 440,000 headers with their uncles are a gigabyte.
 */
const MOST_WAITING = 16 * 2 ** 20;

/** Longest wait for a store that takes nothing, in milliseconds; it is given up then, and the client goes on without. */
const PATIENCE = 30_000;

/** One name for each chain that a client may follow. Modules for tests take a network as an object too, with its own name. */
const nameOf = ({ network, checkpoint }) =>
  `rootlight-v${VERSION}-${network?.name ?? network}-${checkpoint?.hash ?? 'newest'}`;

/**
 * @typedef {object} Pages
 * @property {() => Promise<number>} count how many there are: the number of the last one and one more
 * @property {(index: number) => Promise<Uint8Array | undefined>} read the page of a number, nothing where it cannot be read
 * @property {(first: number, pages: Uint8Array[]) => Promise<void>} save pages from this number on, in place of all there
 * were from there; never rejected
 * @property {() => Promise<void> | undefined} room where much waits to be written: resolves when more may come
 * @property {() => void} close lets another client write
 */

/**
 * @param {undefined | null | {get: Function, put: Function}} store what the caller chose
 * @param {{network: string, checkpoint?: {hash: string}}} config
 * @param {{onError?: (error: Error) => void, onTurn?: (first: number) => void}} [told] of the first failure, and of the
 * page from which on nothing was written while another client wrote
 * @returns {undefined | Pages}
 */
export function pagesIn(store, config, told = {}) {
  const name = nameOf(config);
  if (store) return kept(keyed(store, name), locksOf(store), name, told);
  if (store === null || !globalThis.indexedDB) return undefined;
  const shared = globalThis.navigator?.locks;
  return kept(database(name, shared !== undefined), shared ?? pageLocks, name, told);
}

/** For pages without Web Locks: only clients of the same page know of each other. */
const pageLocks = localLocks();

const locksByStore = new WeakMap();

/** Locks for clients with the same store of the caller's. */
function locksOf(store) {
  if (!locksByStore.has(store)) locksByStore.set(store, localLocks());
  return locksByStore.get(store);
}

/**
 * Pages behind a lock.
 * @param {{read: (index: number, count: number) => Promise<unknown[]>, write: (first: number, pages: Uint8Array[]) => Promise<void>, close: () => void}} place
 */
function kept(place, locks, name, { onError = warn, onTurn }) {
  /** The lowest page that was not written while another client wrote. */
  let missed;
  let failed = false;
  /** Bytes that wait to be written, and who waits until they are fewer. */
  let waiting = 0;
  const waiters = new Set();
  const turn = turnOf(locks, name, () => {
    const first = missed;
    missed = undefined;
    if (first !== undefined) onTurn?.(first);
  });
  let last = turn.asked.catch(fail);

  function fail(error) {
    if (failed) return;
    failed = true;
    wake();
    onError(new Error(`verified headers are not kept: ${error?.message ?? error}`));
  }

  const isFull = () => waiting > MOST_WAITING && !failed;

  function wake() {
    for (const resume of waiters) resume();
  }

  /** Ends when less than {@link MOST_WAITING} waits to be written, or the store is given up. */
  async function emptied() {
    while (isFull()) {
      const before = waiting;
      await new Promise((resolve) => {
        const resume = () => {
          clearTimeout(timer);
          waiters.delete(resume);
          resolve();
        };
        const timer = setTimeout(() => {
          if (waiting === before) fail(new Error(`nothing was written for ${PATIENCE / 1000} s`));
          resume();
        }, PATIENCE);
        timer.unref?.();
        waiters.add(resume);
      });
    }
  }

  async function write(first, pages) {
    if (failed) return;
    if (turn.isOurs()) await place.write(first, pages);
    else missed = Math.min(missed ?? first, first);
  }

  /** The pages read last, the first of them and whatever came with it. */
  let ahead = NONE;

  return {
    count: () => place.count().catch((error) => (fail(error), 0)),
    async read(index) {
      try {
        if (!(index - ahead.first in ahead.pages)) {
          // More at a time as long as they are wanted one after the other.
          const step = index === ahead.first + ahead.step ? Math.min(2 * ahead.step, STEP) || 1 : 1;
          ahead = { first: index, step, pages: await place.read(index, step) };
        }
      } catch (error) {
        fail(error);
      }
      const page = ahead.pages[index - ahead.first];
      return isPage(page) ? page : undefined;
    },
    // One write after the other; after one that failed nothing more is written, since pages build on each other.
    save(first, pages) {
      ahead = NONE;
      if (failed) return last;
      const bytes = pages.reduce((sum, page) => sum + page.length, 0);
      waiting += bytes;
      const written = () => {
        waiting -= bytes;
        wake();
      };
      return (last = last.then(() => write(first, pages)).catch(fail).then(written));
    },
    room: () => (isFull() ? emptied() : undefined),
    close() {
      turn.end();
      void last.then(place.close);
    },
  };
}

function warn(error) {
  console.warn(`rootlight: ${error.message}`);
}

/** The turn at writing: asked for at once, and waited for where another client has it. */
function turnOf(locks, name, onTurn) {
  const end = new AbortController();
  let ours = false;
  const take = () => {
    ours = true;
    return new Promise((release) => {
      if (end.signal.aborted) release();
      else end.signal.addEventListener('abort', release);
    });
  };
  const wait = () => locks.request(name, { signal: end.signal }, () => {
    const taken = take();
    onTurn();
    return taken;
  }).catch(() => {});
  const asked = new Promise((resolve, reject) => {
    const first = locks.request(name, { ifAvailable: true }, (lock) => {
      resolve();
      return lock ? take() : void wait();
    });
    first.catch(reject);
  });
  return {
    /** Once it is known whether the turn is ours from the start. */
    asked,
    isOurs: () => ours && !end.signal.aborted,
    end: () => end.abort(),
  };
}

/** Nothing was read ahead. */
const NONE = { first: 0, step: 0, pages: [] };

const isPage = (page) => page instanceof Uint8Array && page.length > 0;

/** Most pages that are looked for: 67 million headers. */
const MOST = 2 ** 20;

/** Pages in a store of the caller's: a value of no bytes ends them. */
function keyed(store, name) {
  const key = (index) => `${name}/${index}`;
  const has = async (index) => isPage(await store.get(key(index)));
  return {
    // Such a store does not tell its keys: looked for in ever larger steps, then in ever smaller ones.
    async count() {
      let [low, high] = [0, 1];
      while (high < MOST && (await has(high - 1))) [low, high] = [high, high * 2];
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
      if (first > 0 && !(await store.get(key(first - 1)))?.length) return;
      for (const [place, page] of [...pages, new Uint8Array(0)].entries()) await store.put(key(first + place), page);
    },
    close() {},
  };
}

/** Pages in IndexedDB; each change is one transaction. `alone`: no other page writes meanwhile. */
function database(name, alone) {
  let opening;
  const open = () => (opening ??= opened(name));
  const inStore = async (mode) => {
    const transaction = (await open()).transaction(PAGES, mode);
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
      return Number.isSafeInteger(last) && last < MOST ? last + 1 : 0;
    },
    async read(index, count) {
      const { store } = await inStore('readonly');
      return Promise.all(Array.from({ length: count }, (_, place) => got(store, index + place)));
    },
    async write(first, pages) {
      const { transaction, store } = await inStore('readwrite');
      const committed = done(transaction, 'complete');
      const end = first + pages.length;
      const links = first === 0 || (await got(store, first - 1)) !== undefined;
      // Where pages do not know of each other, one that is ahead goes on; nobody cuts off what it wrote.
      const leads = alone || pages.length === 0 || (await got(store, end)) === undefined;
      if (links && leads) {
        store.delete(IDBKeyRange.lowerBound(end));
        pages.forEach((page, place) => store.put(page, first + place));
      }
      await committed;
    },
    close: () => opening?.then((db) => db.close(), () => {}),
  };
}

const PAGES = 'pages';

async function opened(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(PAGES);
  const db = await inTime(request);
  // Another page may delete or upgrade it.
  db.onversionchange = () => db.close();
  return db;
}

/** The database that a request opens, unless other pages keep it from opening. */
async function inTime(request) {
  let timer;
  const refused = new Promise((_, reject) => {
    const words = (reason) => () => reject(new Error(`${reason}: close other pages of this site`));
    timer = setTimeout(words(`the database did not open within ${OPENING / 1000} s`), OPENING);
    request.onblocked = words('another page holds the database open in an older version');
  });
  const opening = done(request, 'success', () => request.result);
  try {
    return await Promise.race([opening, refused]);
  } catch (error) {
    // What opens after all is not left open: it would be in the way of others.
    opening.then((db) => db.close(), () => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function done(target, event, result = () => undefined) {
  return new Promise((resolve, reject) => {
    target[`on${event}`] = () => resolve(result());
    target.onerror = target.onabort = () => reject(target.error);
  });
}
