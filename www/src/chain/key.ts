// The visitor's API key of a server. The address of the page may have it in its fragment (`#key=...`); links of the page replace the fragment, so
// that the key moves to this tab's session storage.

/** The name of the key in the storage: servers below different paths of one origin may have keys of their own. */
const nameInStorage = (): string => `rootlight-key ${location.pathname}`;

/** The key; empty if there is none. */
let key = '';

/** The storage of this tab, which may be denied; the key then lasts as long as the page. */
function stored(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}

/** The key for requests to the server; empty if there is none. */
export const serverKey = (): string => key;

/** Sets the key, and stores it. An empty one is removed. */
export function keepKey(given: string): void {
  key = given.trim();
  try {
    if (key === '') stored()?.removeItem(nameInStorage());
    else stored()?.setItem(nameInStorage(), key);
  } catch {
    // The storage is denied; `key` lasts as long as the page.
  }
}

/** Moves the key from the address to the storage; without one in the address reads the storage. Returns whether the address had one. */
export function takeKey(): boolean {
  const given = new URLSearchParams(location.hash.slice(1)).get('key');
  if (given === null) {
    key ||= stored()?.getItem(nameInStorage()) ?? '';
    return false;
  }
  keepKey(given);
  history.replaceState(null, '', location.pathname + location.search);
  return true;
}
