// The pages of headers in IndexedDB, as a page of the site sees them that stores them.
import { digestOf } from './store-scenario.mjs';
import { until } from './wait.mjs';

/** Headers in a page. */
const HEADERS = 64;

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** The result of a request to the only database of the site, or `none` without one. */
async function read(ask, none) {
  const [known] = await indexedDB.databases();
  if (!known) return none;
  const db = await done(indexedDB.open(known.name));
  try {
    return db.objectStoreNames.contains('pages') ? await done(ask(db.transaction('pages').objectStore('pages'))) : none;
  } finally {
    db.close();
  }
}

/** Waits until at least this many pages are stored; resolves to their number. */
export const stored = (pages) =>
  until(async () => {
    const now = await read((store) => store.count(), 0);
    return now >= pages && now;
  }, `${pages} stored pages`, { every: 5 });

/** Waits until the headers up to a block are stored: the last page is written when the head is reached. */
export const storedUpTo = (block) => stored(Math.floor(block / HEADERS) + 1);

/** Whether the stored pages have this digest. */
export const areStored = async (digest) => (await digestOf(await read((store) => store.getAll(), []))) === digest;

/** Waits until no client of the site may write. */
export const released = () =>
  until(async () => {
    const { held } = await navigator.locks.query();
    return !held.some(({ name }) => name.startsWith('rootlight-v'));
  }, 'the end of the writer');
