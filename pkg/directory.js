// Pages of verified headers in a directory, for Node.js, Deno and Bun. Each page is a file that is written under another name
// first, so that a process that is killed leaves no half of one.

/** The most pages that are written: 16 million headers, about a gigabyte. */
const MOST_PAGES = 2 ** 18;

/** Milliseconds between two attempts to become the writer. */
const LOOK = 2_000;

/** The names are variables so that bundlers for browsers do not resolve them. */
const FILES = 'node:fs/promises';
const PATHS = 'node:path';
const URLS = 'node:url';

const bring = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

/** Result of work on a file; undefined if there is no such file. */
const present = (work) => work.catch((error) => (error.code === 'ENOENT' ? undefined : Promise.reject(error)));

/** A name without characters that file systems treat specially. */
const plain = (name) => name.replaceAll(/[^\w.-]/g, '_');

async function opened(storage, name) {
  const [files, { join }, { fileURLToPath }] = await Promise.all([FILES, PATHS, URLS].map(bring));
  const root = storage instanceof URL || /^file:/.test(storage) ? fileURLToPath(storage) : storage;
  const folder = join(root, plain(name));
  await files.mkdir(folder, { recursive: true });
  return { files, root, folder, path: (index) => join(folder, `${index}.page`), lock: join(folder, 'writer') };
}

const numberOf = (file) => (/^\d+\.page$/.test(file) ? parseInt(file, 10) : -1);

/**
 * @param {string | URL} storage the directory
 * @param {string} name of the chain and the version of the format
 * @param {RegExp} former matches the names of other versions, whose pages are deleted
 */
export function directory(storage, name, former) {
  let opening;
  const open = () => (opening ??= opened(storage, name));

  /** The numbers of the stored pages. */
  const numbers = async ({ files, folder }) => (await files.readdir(folder)).map(numberOf).filter((index) => index >= 0);

  const place = {
    async count() {
      const all = new Set(await numbers(await open()));
      let count = 0;
      while (all.has(count)) count += 1;
      return count;
    },
    async read(index, count) {
      const { files, path } = await open();
      return Promise.all(Array.from({ length: count }, (_, at) => present(files.readFile(path(index + at)))));
    },
    async write(first, pages) {
      const here = await open();
      const { files, path } = here;
      const end = first + pages.length;
      if (end > MOST_PAGES) throw new Error(`more than ${MOST_PAGES} pages`);
      if (first > 0 && !(await present(files.stat(path(first - 1))))) return;
      const stale = (await numbers(here)).filter((index) => index >= first);
      // The last one first: pages that are left after a crash follow each other without a gap.
      for (const index of stale.sort((a, b) => b - a)) await present(files.rm(path(index)));
      for (const [at, page] of pages.entries()) {
        const file = path(first + at);
        await files.writeFile(`${file}.new`, page);
        await files.rename(`${file}.new`, file);
      }
    },
    close() {},
  };

  /** Deletes the pages of other versions of the format. */
  async function tidy({ files, root }) {
    for (const entry of await files.readdir(root)) {
      if (former.test(entry)) await files.rm(`${root}/${entry}`, { recursive: true, force: true });
    }
  }

  return { place, locks: processLocks(open, tidy) };
}

/** Whether a process runs. */
function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The locks that this process holds, by file: a second client of the process is not mistaken for its owner. */
const held = new Set();

/**
 * A lock among processes with the part of the Web Locks API that store.js uses: a file that names the process. The file of a
 * process that was killed is replaced.
 */
function processLocks(open, tidy) {
  /** Takes the lock. Returns whether that succeeded. */
  async function take({ files, lock }) {
    if (held.has(lock)) return false;
    held.add(lock);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const made = await files.writeFile(lock, `${process.pid}`, { flag: 'wx' }).then(() => true, (error) => (error.code === 'EEXIST' ? false : (held.delete(lock), Promise.reject(error))));
      if (made) return true;
      const owner = Number(await present(files.readFile(lock, 'utf8')));
      // A process has a lock of its own number here only if a former process with that number was killed.
      if (owner > 0 && owner !== process.pid && runs(owner)) break;
      await files.rm(lock, { force: true });
    }
    held.delete(lock);
    return false;
  }

  return {
    async request(name, { ifAvailable, signal }, work) {
      const here = await open();
      while (!(await take(here))) {
        if (ifAvailable) return work(null);
        await new Promise((resolve) => setTimeout(resolve, LOOK).unref?.());
        signal?.throwIfAborted();
      }
      try {
        await tidy(here);
        return await work({ name });
      } finally {
        await here.files.rm(here.lock, { force: true });
        held.delete(here.lock);
      }
    },
  };
}
