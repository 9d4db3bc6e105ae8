// Stores the pages of a window (see `checkpoint` in index.d.ts) under a fixed number of keys: a new page overwrites one so old that it is not
// needed any more. Two more keys have the module's record of the window, and Bitcoin's chain. Pages are numbered from block 0 on, so that
// their numbers are large.
import { isBytes } from './message.js';

/** Number of keys of pages: the module reads the newest 120 pages (`WINDOW_PAGES`), and a reorganisation may remove some of the newest. */
const PAGE_KEYS = 128;

/** The key of the record. */
const RECORD = 0;

/** The key of Bitcoin's chain. */
const BITCOIN = PAGE_KEYS + 1;

/** The most bytes of Bitcoin's chain and coinbases that are read: the chain takes up to 174 kB, the coinbases up to half a megabyte. */
const MAX_BITCOIN = 2 ** 20;

/** Bytes before the record: the number after the last page, big-endian. */
const END_BYTES = 4;

/** The longest record that is read, in bytes. */
const MAX_RECORD = 1_024;

/** The key of a page: 1 to 128. */
const keyOf = (index) => 1 + (index % PAGE_KEYS);

/**
 * The pages of a window, with the functions that store.js uses.
 * @param {{read: (key: number, count: number) => Promise<unknown[]>, put: (entries: [number, Uint8Array][]) => Promise<void>, close: () => void}} pageStore
 * stores values by key
 */
export function windowIn(pageStore) {
  /** The stored record with the number after the last page; undefined if there is none. */
  async function stored() {
    const [bytes] = await pageStore.read(RECORD, 1);
    if (!isBytes(bytes) || bytes.length < END_BYTES || bytes.length > MAX_RECORD) return undefined;
    const end = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
    return { end, record: bytes.slice(END_BYTES) };
  }
  return {
    count: async () => (await stored())?.end ?? 0,
    async record() {
      const [window, [chain]] = await Promise.all([stored(), pageStore.read(BITCOIN, 1)]);
      const bitcoin = isBytes(chain) && chain.length <= MAX_BITCOIN ? chain : undefined;
      return window && { window: window.record, bitcoin };
    },
    read: (index, count) => Promise.all(Array.from({ length: count }, async (_, at) => (await pageStore.read(keyOf(index + at), 1))[0])),
    async write(first, pages, record) {
      if (!record || pages.length === 0) return;
      const { window, bitcoin } = record;
      const packed = new Uint8Array(END_BYTES + window.length);
      new DataView(packed.buffer).setUint32(0, first + pages.length);
      packed.set(window, END_BYTES);
      const entries = pages.map((page, at) => [keyOf(first + at), page]);
      if (bitcoin) entries.push([BITCOIN, bitcoin]);
      // The record comes last: if writing stops in between, the stored record is the former one, whose pages are there or replaced by newer ones.
      await pageStore.put([...entries, [RECORD, packed]]);
    },
    close: () => pageStore.close(),
  };
}
