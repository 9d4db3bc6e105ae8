// Announces a provider to the page (EIP-6963), so that wallet dialogues list it. `window` is used only when this is called.

/** A UUID of version 4. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** A reversed domain name, as in `org.example.wallet`. */
const RDNS = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/i;

/** A random UUID of version 4. Browsers have a function for it in secure contexts only. */
function randomUuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  // The bits of version 4 and of the variant of RFC 9562.
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const isText = (value) => typeof value === 'string' && value.length > 0;

/** The error text for a wrong description; undefined if it is right. */
function faultOf({ uuid, name, icon, rdns }) {
  if (!isText(uuid) || !UUID.test(uuid)) return 'uuid: give a UUID of version 4';
  if (!isText(name)) return 'name: give the name that users see';
  if (!isText(icon) || !icon.startsWith('data:image/')) return 'icon: give a data: URI of an image';
  if (!isText(rdns) || !RDNS.test(rdns)) return 'rdns: give a domain name of yours, reversed';
  return undefined;
}

/**
 * Announces a provider at once and whenever the page asks. Returns a function that stops this.
 * @param {import('./index.js').Provider} provider
 * @param {import('./index.js').ProviderInfo} info
 * @returns {() => void}
 */
export function announce(provider, info) {
  const { uuid = randomUuid(), name, icon, rdns } = info;
  const checked = Object.freeze({ uuid, name, icon, rdns });
  const reason = faultOf(checked);
  if (reason) throw new TypeError(reason);
  const { window } = globalThis;
  if (!window) throw new TypeError('announce: only a page has other programs to announce to');
  const detail = Object.freeze({ info: checked, provider });
  const dispatch = () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }));
  window.addEventListener('eip6963:requestProvider', dispatch);
  dispatch();
  return () => window.removeEventListener('eip6963:requestProvider', dispatch);
}
