// Where a light client keeps verified headers between two visits. They come and go as numbered pages of bytes; what
// they are worth is decided by the WebAssembly module, which ignores pages that are damaged or about something else.

/** Version of the pages. Others have other names. */
const VERSION = 1;

/** One name for each chain that a client may follow. */
const nameOf = ({ network, checkpoint }) => `rootlight-v${VERSION}-${network}-${checkpoint?.hash ?? 'newest'}`;

/**
 * @param {undefined | null | {get: Function, put: Function}} store what the caller chose
 * @param {{network: string, checkpoint?: {hash: string}}} config
 * @returns {undefined | {load: () => Promise<Uint8Array[]>, save: (first: number, pages: Uint8Array[]) => void}}
 */
export function pagesIn(store, config) {
  const name = nameOf(config);
  if (store) return keyed(store, name);
  // Where there is no IndexedDB, this is a store that fails.
  return store === undefined ? database(name) : undefined;
}

/** Pages in a store of the caller's: a value of no bytes ends them. */
function keyed(store, name) {
  const key = (index) => `${name}/${index}`;
  return {
    async load() {
      const pages = [];
      for (;;) {
        const page = await store.get(key(pages.length));
        if (!page?.length) return pages;
        pages.push(page);
      }
    },
    save: inOrder(async (first, pages) => {
      for (const [place, page] of [...pages, new Uint8Array(0)].entries()) await store.put(key(first + place), page);
    }),
  };
}

/** Pages in IndexedDB; each change is one transaction. */
function database(name) {
  let opening;
  const open = () => (opening ??= opened(name));
  return {
    load: async () => {
      const request = (await open()).transaction(PAGES).objectStore(PAGES).getAll();
      return done(request, 'success', () => request.result);
    },
    save: inOrder(async (first, pages) => {
      const transaction = (await open()).transaction(PAGES, 'readwrite');
      const store = transaction.objectStore(PAGES);
      store.delete(IDBKeyRange.lowerBound(first));
      pages.forEach((page, place) => store.put(page, first + place));
      await done(transaction, 'complete');
    }),
  };
}

const PAGES = 'pages';

async function opened(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(PAGES);
  await done(request, 'success');
  const db = request.result;
  // Another page may delete or upgrade it.
  db.onversionchange = () => db.close();
  return db;
}

function done(target, event, result = () => undefined) {
  return new Promise((resolve, reject) => {
    target[`on${event}`] = () => resolve(result());
    target.onerror = target.onabort = () => reject(target.error);
  });
}

/** One write after the other; after one that failed nothing more is written, since pages build on each other. */
function inOrder(write) {
  let last = Promise.resolve();
  let failed = false;
  return (...args) => {
    last = last.then(() => (failed ? undefined : write(...args))).catch(() => {
      failed = true;
    });
    return last;
  };
}

/** The pages there are; a store that cannot be read is like an empty one. */
export async function loaded(pages) {
  return pages?.load().catch(() => []);
}
