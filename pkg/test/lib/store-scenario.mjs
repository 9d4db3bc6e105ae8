// One visit with what earlier ones have kept, the same in Node.js and in a page.

/** Connects, asks for the head, closes once what is new is kept. */
export async function visit({ connect }, options) {
  const provider = await connect(options);
  try {
    const head = Number(await provider.request({ method: 'eth_blockNumber', params: [] }));
    // Uncles come after the head; then there is nothing more to keep.
    await new Promise((resolve) => setTimeout(resolve, 300));
    return head;
  } finally {
    provider.close();
  }
}

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Damages what is kept in IndexedDB. */
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
