// One visit with the headers that earlier visits stored, in Node.js and in a page.
import { pause, until } from './wait.mjs';

/** A store that writes at once has written when other work has had its turn. */
const atOnce = () => pause(0).then(() => true);

/** Connects, requests the head, and closes after new headers are stored. */
export async function visit({ createProvider }, options, areStored = atOnce) {
  const provider = await createProvider(options);
  try {
    const head = Number(await provider.request({ method: 'eth_blockNumber', params: [] }));
    // Uncles arrive after the head; after them there is nothing more to store.
    const isComplete = async () => (await provider.request({ method: 'rootlight_syncStatus' })).unclesComplete;
    await until(async () => (await isComplete()) && areStored(), 'headers and uncles in the store');
    return head;
  } finally {
    provider.close();
  }
}

/** A text that differs if any of these pages does. */
export async function digestOf(pages) {
  const bytes = new Uint8Array(await new Blob(pages).arrayBuffer());
  return String(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

/** All stored pages. */
export async function loaded(pages) {
  const all = [];
  for (let index = 0; index < (await pages.count()); index += 1) {
    const page = await pages.read(index);
    if (page) all.push(page);
  }
  return all;
}

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('blocked'));
  });

/** Damages the pages in IndexedDB. */
export async function harmDatabases(change) {
  if (!change) return;
  for (const { name } of await indexedDB.databases()) {
    const db = await settled(indexedDB.open(name));
    const store = db.transaction('pages', 'readwrite').objectStore('pages');
    for (const key of await settled(store.getAllKeys())) {
      const page = await settled(store.get(key));
      const harmed = change === 'cut' ? page.slice(0, -1) : page.map((byte, place) => (place === 100 ? byte ^ 1 : byte));
      await settled(store.put(harmed, key));
    }
    db.close();
  }
}

/** Pages in IndexedDB, including failures of the database. */
export async function databases({ pagesIn }) {
  const config = { network: 'regtest', checkpoint: { hash: '0x1' } };
  const pages = pagesIn(undefined, config, { onError: () => {} });
  const silent = { onError: () => {} };
  const read = async () => (await loaded(pagesIn(undefined, config, silent))).map((page) => [...page]);
  const page = (byte) => Uint8Array.of(byte);
  const { open } = IDBFactory.prototype;
  let connections = 0;
  IDBFactory.prototype.open = function (...given) {
    connections += 1;
    return open.apply(this, given);
  };
  const unwanted = pagesIn(null, config) ? 'a database' : await indexedDB.databases();
  await pages.save(0, [page(0), page(8), page(9)]);
  await pages.save(1, [page(7)]);
  IDBFactory.prototype.open = open;
  const replaced = await read();

  // The disk is full when everything is written.
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...given) {
    const request = put.apply(this, given);
    request.onsuccess = () => this.transaction.abort();
    return request;
  };
  await pages.save(1, [page(6)]);
  IDBObjectStore.prototype.put = put;
  const aborted = await read();
  await pages.save(0, [page(5)]);
  const after = await read();

  const [{ name }] = await indexedDB.databases();
  const remove = () => settled(indexedDB.deleteDatabase(name));
  await remove();
  const gone = await read();

  // A database of a later version.
  await remove();
  const upgraded = indexedDB.open(name, 2);
  upgraded.onupgradeneeded = () => upgraded.result.createObjectStore('other');
  (await settled(upgraded)).close();
  return { unwanted, connections, replaced, aborted, after, gone, newer: await read() };
}

/** A database that is closed while a client uses it: by a page that deletes it, and by the browser. */
export async function closedDatabases({ pagesIn }) {
  const told = [];
  const pages = pagesIn(undefined, { network: 'regtest' }, { onError: ({ message }) => told.push(message) });
  const connections = new Set();
  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = function (...given) {
    connections.add(this);
    return transaction.apply(this, given);
  };
  await pages.save(0, [Uint8Array.of(1)]);
  await settled(indexedDB.deleteDatabase('rootlight-v1-regtest-newest'));
  await pages.save(0, [Uint8Array.of(2)]);
  const afterDeletion = (await loaded(pages)).map((page) => [...page]);
  for (const connection of connections) connection.close();
  await Promise.all([pages.save(1, [Uint8Array.of(3)]), pages.count(), pages.count()]);
  const afterClosing = (await loaded(pages)).map((page) => [...page]);
  IDBDatabase.prototype.transaction = transaction;
  await pages.close();
  return { told, afterDeletion, afterClosing, connections: connections.size };
}

/** The databases of the site after a client has become the writer of a chain, among those of former chains and versions. */
export async function formerDatabases({ pagesIn }) {
  const [aa, bb, cc] = ['aa', 'bb', 'cc'].map((byte) => `0x${byte.repeat(32)}`);
  const chain = (network, hash) => ({ network, ...(hash && { checkpoint: { hash } }) });
  const visit = async (config) => {
    const pages = pagesIn(undefined, config);
    await pages.save(0, [Uint8Array.of(1)]);
    return pages;
  };
  // A window is not deleted for a chain above a checkpoint, nor such a chain for a window.
  const windows = ['rootlight-v1-regtest-window', 'rootlight-v1-devnet-window', `rootlight-v1-devnet-${aa}`];
  const former = ['rootlight-v0-mainnet-newest', `rootlight-v1-regtest-${aa}`, 'rootlight-v1-regtest-newest', 'rootlight-v0-regtest-window'];
  for (const name of [...former, ...windows.filter((name) => !name.endsWith('devnet-window')), 'rootlight-v1-testnet2-newest', 'mine']) {
    (await settled(indexedDB.open(name, 1))).close();
  }
  const other = await visit(chain('testnet', bb));
  const used = await visit(chain('regtest', bb));
  const ofWindow = pagesIn(undefined, chain('devnet'), { isWindow: true });
  await ofWindow.save(0, [Uint8Array.of(1)], { window: Uint8Array.of(2) });
  const pages = await visit(chain('regtest', cc));
  const names = async () => (await indexedDB.databases()).map(({ name }) => name).sort();
  const expected = ['mine', `rootlight-v1-regtest-${bb}`, `rootlight-v1-regtest-${cc}`, `rootlight-v1-testnet-${bb}`, 'rootlight-v1-testnet2-newest'];
  expected.push(...windows);
  expected.sort();
  await until(async () => String(await names()) === String(expected), 'no former databases').catch(() => {});
  const left = await names();
  for (const client of [other, used, ofWindow, pages]) await client.close();
  return { left, expected };
}
