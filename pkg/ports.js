// What host.js (the worker's side) and remote.js (the page's side) share: listening to ports, errors that are sent over them, and locks by
// which each side notices that the other one is gone.

/**
 * Listens to a port of a browser or of Node.js. Workers of Node.js have `on` only.
 * @param {object} port
 * @param {string} event
 * @param {(event: {data?: unknown, message?: string}) => void} listener
 */
export function listen(port, event, listener) {
  if (typeof port.addEventListener === 'function') port.addEventListener(event, listener);
  else port.on(event, (value) => listener({ data: value, message: value?.message }));
}

/** An error as an object that can be copied to another thread. */
export const packed = (error) => {
  if (!(error instanceof Error) && typeof error !== 'object') return { message: String(error) };
  const { name, message, code, data } = error;
  return { name, message: String(message), ...(code !== undefined && { code }), ...(data !== undefined && { data }) };
};

/** The error that {@link packed} was given. */
export function unpacked({ name, message, code, data }) {
  const error = Object.assign(new Error(message), code !== undefined && { code }, data !== undefined && { data });
  if (name && name !== 'Error') error.name = name;
  return error;
}

/** Web Locks, which browsers offer in secure contexts only. */
const locks = () => globalThis.navigator?.locks;

/**
 * Takes a lock that is released when this thread is gone, or when `released` resolves.
 * @param {string} kind the first part of its name
 * @param {Promise<void>} released
 * @returns {Promise<string | undefined>} its name; undefined if there are no locks, or none for this page (a sandboxed frame)
 */
export async function signOfLife(kind, released) {
  if (!locks()) return undefined;
  const name = `rootlight-${kind}-${crypto.randomUUID()}`;
  return new Promise((resolve) => {
    const held = () => {
      resolve(name);
      return released;
    };
    locks().request(name, held).catch(() => resolve(undefined));
  });
}

/** Calls `onGone` once the thread that has taken a lock is gone, unless the signal aborts before: it waits for the same lock. */
export function watch(name, signal, onGone) {
  if (!name || !locks()) return;
  // The rejection of an aborted request is ignored.
  locks().request(name, { signal }, () => onGone()).catch(() => {});
}
