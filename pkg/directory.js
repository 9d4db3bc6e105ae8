// Stores pages of verified headers in a directory, for Node.js, Deno and Bun (store.js). Each page is a file that is written under a random
// name first and renamed, so that a process that is killed leaves no incomplete page. Only files that this package has made are replaced
// or removed, and no symbolic link in the directory is followed, because other users may be able to write there.

/** Most bytes of a page, as in the module (`src/light/sync/pages.rs`). A longer one is damaged. */
export const MAX_PAGE_BYTES = 32 + 6 * 2 ** 20;

/** The most pages that are written: 16 million headers, about a gigabyte. */
const MOST_PAGES = 2 ** 18;

/** Milliseconds between two attempts to become the writer, and between two signs of life of the writer (touches of the lock file). */
const LOCK_INTERVAL = 2_000;

/**
 * Milliseconds without a sign of life after which another client becomes the writer. The process number does not show whether a writer in
 * another container, or in another thread of this process, still runs.
 */
const STALE = 20_000;

/** Modules of Node.js. Their names are variables so that bundlers for browsers do not resolve them. */
const FILES = 'node:fs/promises';
const PATHS = 'node:path';
const URLS = 'node:url';
const SYSTEM = 'node:os';

const importModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

/** Result of work on a file; undefined if there is no such file. */
const present = (work) => work.catch((error) => (error.code === 'ENOENT' ? undefined : Promise.reject(error)));

/** A name without characters that file systems treat specially. */
const plain = (name) => name.replaceAll(/[^\w.-]/g, '_');

/** Makes the directory of a chain; returns its paths and the functions to use it. */
async function opened(storage, name) {
  const [files, { join }, { fileURLToPath }, { hostname }] = await Promise.all([FILES, PATHS, URLS, SYSTEM].map(importModule));
  const root = storage instanceof URL || /^file:/.test(storage) ? fileURLToPath(storage) : storage;
  const folder = join(root, plain(name));
  await files.mkdir(folder, { recursive: true });
  if (!(await files.lstat(folder)).isDirectory()) throw new Error(`${folder} is a symbolic link: remove it, or name another directory`);
  return { files, root, folder, host: hostname(), path: (index) => join(folder, `${index}.page`), lock: join(folder, 'writer') };
}

/** The number of a page in the name of its file; -1 for other names. */
const numberOf = (file) => (/^\d+\.page$/.test(file) ? parseInt(file, 10) : -1);

/** Files of pages that a process has not finished writing. */
const UNFINISHED = /^\d+\.page\.(?:[\da-f-]{36}\.)?new$/;

/** The content of a file; undefined if there is none, if the name is that of something else, or if the file is longer than any page. */
async function content({ files }, path, encoding) {
  const found = await present(files.lstat(path));
  return found?.isFile() && found.size <= MAX_PAGE_BYTES ? present(files.readFile(path, encoding)) : undefined;
}

/**
 * The pages and the locks of a chain in a directory, for `pagesIn` of store.js.
 * @param {string | URL} storage the directory
 * @param {string} name of the chain and the version of the format
 * @param {(name: string) => boolean} isFormer whether a name is that of an earlier version, whose pages are deleted
 */
export function directory(storage, name, isFormer) {
  let opening;
  const open = () => (opening ??= opened(storage, name));
  const locks = processLocks(open, tidy);

  /** The numbers of the stored pages. */
  const numbers = async ({ files, folder }) => (await files.readdir(folder)).map(numberOf).filter((index) => index >= 0);

  /** The directory, if this client is the writer. A process that was suspended for long may not be any more. */
  async function ownDirectory() {
    const here = await open();
    if (!(await locks.isOurs(here))) throw new Error('another client has become the writer of this directory');
    return here;
  }

  /** Writes pages in this order. */
  async function put({ files, path }, entries) {
    for (const [index, page] of entries) {
      const file = path(index);
      const made = `${file}.${crypto.randomUUID()}.new`;
      await files.writeFile(made, page, { flag: 'wx' });
      await files.rename(made, file);
    }
  }

  const pageStore = {
    async count() {
      const all = new Set(await numbers(await open()));
      let count = 0;
      while (all.has(count)) count += 1;
      return count;
    },
    async read(index, count) {
      const here = await open();
      return Promise.all(Array.from({ length: count }, (_, at) => content(here, here.path(index + at))));
    },
    async write(first, pages) {
      const here = await ownDirectory();
      const { files, path } = here;
      const end = first + pages.length;
      if (end > MOST_PAGES) throw new Error(`more than ${MOST_PAGES} pages`);
      // Pages that would follow a gap are not written.
      if (first > 0 && !(await present(files.stat(path(first - 1))))) return;
      const stale = (await numbers(here)).filter((index) => index >= first);
      // The last one first: pages that are left after a crash follow each other without a gap.
      for (const index of stale.sort((a, b) => b - a)) await present(files.rm(path(index)));
      await put(here, pages.map((page, at) => [first + at, page]));
    },
    put: async (entries) => put(await ownDirectory(), entries),
    close() {},
  };

  /** Deletes unfinished files that a process has left which was killed, and the pages of earlier versions that no client uses. */
  async function tidy(here) {
    const { files, root, folder } = here;
    for (const file of await files.readdir(folder)) if (UNFINISHED.test(file)) await files.rm(`${folder}/${file}`, { force: true });
    for (const entry of await files.readdir(root, { withFileTypes: true })) {
      if (entry.isDirectory() && isFormer(entry.name)) await remove(here, `${root}/${entry.name}`);
    }
  }

  /** Deletes the files of this package in a directory, and the directory if it is empty then. */
  async function remove(here, folder) {
    const { files } = here;
    if (await isHeld({ ...here, lock: `${folder}/writer` })) return;
    for (const file of await files.readdir(folder, { withFileTypes: true })) {
      const isOurs = file.isFile() && (numberOf(file.name) >= 0 || UNFINISHED.test(file.name) || file.name === 'writer');
      if (isOurs) await files.rm(`${folder}/${file.name}`, { force: true });
    }
    await files.rmdir(folder).catch(() => {});
  }

  return { pageStore, locks };
}

/** Whether a process runs. */
function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The process and the machine in the file of a lock; nothing if the file is not written yet. */
function ownerIn(text) {
  try {
    const [pid, host] = JSON.parse(text);
    return { pid, host };
  } catch {
    return {};
  }
}

/**
 * The present by the clock of the file system. Clocks of clients may be wrong, and a directory may be shared among machines whose
 * clocks differ. The name of the file is one that the next writer removes if this process is killed meanwhile.
 */
async function timeOf({ files }, lock) {
  const probe = lock.replace(/writer$/, `0.page.${crypto.randomUUID()}.new`);
  const file = await files.open(probe, 'wx');
  try {
    return (await file.stat()).mtime;
  } finally {
    await file.close();
    await files.rm(probe, { force: true });
  }
}

/** Whether a lock has an owner that may still run. Process numbers say something only about other processes of this machine. */
async function isHeld(here) {
  const { files, lock, host } = here;
  const file = await present(files.lstat(lock));
  if (!file) return false;
  const owner = ownerIn(await content(here, lock, 'utf8'));
  if (owner.host === host && owner.pid !== process.pid && !runs(owner.pid)) return false;
  const now = await timeOf(here, lock);
  const age = now - file.mtimeMs;
  // The lock is from the future: the clock was wrong. A living owner touches the file again; any other lock ages from now on.
  if (age < -LOCK_INTERVAL) await files.lutimes(lock, now, now).catch(() => {});
  return age <= STALE;
}

/**
 * A lock among processes with the part of the Web Locks API that store.js uses: a file that names the process and its machine, and
 * has a random part by which its owner knows it. The owner touches it while it lives. The file of a process that was killed is replaced.
 */
function processLocks(open, tidy) {
  /** The content of the lock file while the lock is ours. */
  let mine;
  const isOurs = async (here) => mine !== undefined && (await content(here, here.lock, 'utf8')) === mine;

  /** Takes the lock. Returns whether that succeeded. */
  async function take(here) {
    const { files, lock, host } = here;
    const text = JSON.stringify([process.pid, host, crypto.randomUUID()]);
    // The second attempt follows the removal of a lock without a living owner.
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const made = await files.writeFile(lock, text, { flag: 'wx' }).then(() => true, (error) => (error.code === 'EEXIST' ? false : Promise.reject(error)));
      if (made) {
        mine = text;
        return true;
      }
      const found = await present(files.lstat(lock));
      if (!found) continue;
      if (await isHeld(here)) return false;
      // Removed only if it is still the same file: another client may have replaced it meanwhile.
      const now = await present(files.lstat(lock));
      if (now?.ino === found.ino && now.mtimeMs === found.mtimeMs) await files.rm(lock, { force: true });
    }
    return false;
  }

  /** Touches the file regularly. Returns a function that stops this. */
  function signsOfLife(here) {
    let touched = Promise.resolve();
    async function touch() {
      const now = await timeOf(here, here.lock);
      if (await isOurs(here)) await here.files.utimes(here.lock, now, now);
    }
    const timer = setInterval(() => (touched = touched.then(touch).catch(() => {})), LOCK_INTERVAL);
    timer.unref?.();
    return () => {
      clearInterval(timer);
      return touched;
    };
  }

  return {
    isOurs,
    async request(name, { ifAvailable, signal }, work) {
      const here = await open();
      for (signal?.throwIfAborted(); !(await take(here)); signal?.throwIfAborted()) {
        if (ifAvailable) return work(null);
        await new Promise((resolve) => setTimeout(resolve, LOCK_INTERVAL).unref?.());
      }
      const stop = signsOfLife(here);
      try {
        await tidy(here);
        return await work({ name });
      } finally {
        await stop();
        if (await isOurs(here)) await here.files.rm(here.lock, { force: true });
        mine = undefined;
      }
    },
  };
}
