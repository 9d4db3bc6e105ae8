// The key of a server. A fragment brings it; links of the page would lose it there, so that it moves to this tab's memory.

/** Where this tab keeps it: servers of one origin may have keys of their own. */
const place = (): string => `rootlight-key ${location.pathname}`;

let key = '';

/** The storage of this tab, which may be denied; the key then lasts as long as the page. */
function stored(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}

/** The key that requests go with; empty if none is known. */
export const serverKey = (): string => key;

export function keepKey(given: string): void {
  key = given.trim();
  try {
    if (key === '') stored()?.removeItem(place());
    else stored()?.setItem(place(), key);
  } catch {
    // The page itself remembers it.
  }
}

/** Takes the key out of the address (`#key=...`), or from this tab. Returns whether the address had one. */
export function takeKey(): boolean {
  const given = new URLSearchParams(location.hash.slice(1)).get('key');
  if (given === null) {
    key ||= stored()?.getItem(place()) ?? '';
    return false;
  }
  keepKey(given);
  history.replaceState(null, '', location.pathname + location.search);
  return true;
}
