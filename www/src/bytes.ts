// Conversions of bytes, numbers and times, and the forms in which the page shows them.

/** The error of an input of the visitor that has the wrong form. */
export class InputError extends Error {}

/** The bytes of `0x` hexadecimal; throws for other text. */
export function fromHex(text: string): Uint8Array {
  const digits = text.startsWith('0x') ? text.slice(2) : text;
  if (digits.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(digits)) throw new InputError('not hexadecimal bytes');
  return Uint8Array.from({ length: digits.length / 2 }, (_, at) => Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16));
}

/** Bytes as hexadecimal digits without `0x`. */
export const digits = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Bytes as `0x` hexadecimal. */
export const toHex = (bytes: Uint8Array): string => `0x${digits(bytes)}`;

/** A number as JSON-RPC writes it: `0x` hexadecimal without leading zeros. */
export const quantity = (value: number | bigint): string => `0x${value.toString(16)}`;

/** Bytes one after the other. */
export function concat(...parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, at) => byte === b[at]);

/** Bytes in the other order: Bitcoin shows hashes that way. */
export const reversed = (bytes: Uint8Array): Uint8Array => bytes.slice().reverse();

export const ascii = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

/** The last position of `part` in `whole`; -1 if there is none. */
export function lastIndexOf(whole: Uint8Array, part: Uint8Array): number {
  for (let at = whole.length - part.length; at >= 0; at -= 1) if (equal(whole.subarray(at, at + part.length), part)) return at;
  return -1;
}

/** A big-endian number. */
export const toBig = (bytes: Uint8Array): bigint => (bytes.length === 0 ? 0n : BigInt(toHex(bytes)));

/** A number of at most 256 bits from `0x` hexadecimal; throws for other text. */
export function word256(text: string): bigint {
  if (!/^0x[0-9a-f]{1,64}$/i.test(text)) throw new Error('not a number of 256 bits');
  return BigInt(text);
}

/** The first `front` and the last `back` bytes of a long hexadecimal text; a short one as it is. */
export const short = (hex: string, front = 6, back = 4): string =>
  hex.length <= 2 + 2 * (front + back) ? hex : `${hex.slice(0, 2 + 2 * front)}…${hex.slice(-2 * back)}`;

/** A whole number with a comma between each three digits. `toLocaleString` would load the browser's tables of languages. */
export const grouped = (value: number | bigint): string => value.toString().replace(/\B(?=(\d{3})+$)/g, ',');

/** An amount, counted in its smallest unit, as a decimal number without trailing zeros. */
export function units(amount: bigint, decimals = 18): string {
  const sign = amount < 0n ? '-' : '';
  const text = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, '0');
  const whole = BigInt(text.slice(0, text.length - decimals));
  const rest = decimals === 0 ? '' : text.slice(-decimals).replace(/0+$/, '');
  return `${sign}${grouped(whole)}${rest && `.${rest}`}`;
}

/** Wei as an amount of RBTC, the coin of Rootstock. */
export const rbtc = (wei: bigint): string => `${units(wei)} RBTC`;

/** How long ago a time was, in words. Both times are in seconds since 1970. */
export function ago(seconds: number, now = Date.now() / 1000): string {
  const age = Math.max(0, Math.round(now - seconds));
  if (age < 5) return 'just now';
  if (age < 60) return `${age} s ago`;
  if (age < 3600) return `${Math.floor(age / 60)} min ago`;
  if (age < 86_400) return `${Math.floor(age / 3600)} h ago`;
  return `${grouped(Math.floor(age / 86_400))} days ago`;
}

/** Wei from a decimal amount of RBTC; throws for other text. */
export function toWei(text: string): bigint {
  const parts = /^(\d{1,12})(?:\.(\d{0,18}))?$/.exec(text.trim());
  if (!parts) throw new InputError('write an amount such as 1.5');
  return BigInt(parts[1] ?? 0) * 10n ** 18n + BigInt((parts[2] ?? '').padEnd(18, '0') || 0);
}

/** The form of an address. */
const ADDRESS = /^0x[0-9a-f]{40}$/i;

/** An address in lower case; throws for other text. */
export function toAddress(text: string): string {
  const address = text.trim().toLowerCase();
  if (!ADDRESS.test(address)) throw new InputError(`an address is 0x and 40 hexadecimal digits, not ${address.length} characters; 64 digits are a transaction or a block, a plain number is a block`);
  return address;
}

/** Invisible characters, and those that reverse the direction of text: Unicode's groups for control and format, and its line separators. */
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** A text of the chain or of a node with invisible characters written as numbers, so that it cannot look like another text. */
export const safeText = (text: string): string => text.replaceAll(HIDDEN, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
