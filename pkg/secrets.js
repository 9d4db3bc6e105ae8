// Removes the secrets of upstreams' addresses (users, passwords, keys) from texts: errors of engines and of nodes may repeat an address.

/** An address in a text. The part after its host may contain a password or a key. */
const ADDRESS = /\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/?#"'<>]*@)?([^\s/?#"'<>@]*)[^\s"'<>]*/gi;

/** Longest text that is searched for addresses, in characters; the rest is cut off. Bounds the time of the search. */
const MAX_TEXT = 2_000;

/** Length, in characters, from which a segment of a path, or a user, may be a key; `v3`, `rpc` or `mainnet` are shorter. */
const KEY_LENGTH = 12;

/** Length, in characters, from which a password or a value of a query is removed: removing shorter ones would damage other words. */
const SECRET_LENGTH = 4;

/** The message of an error in the JSON text of a response. No result that the module requests has a member of this name. */
const MESSAGE = /("message"\s*:\s*)("[^"\\]*(?:\\.[^"\\]*)*")/g;

/** Most messages of one response that are masked; later ones become empty. Bounds the time of masking. */
const MOST_MESSAGES = 10_000;

/** Removes the secrets of addresses from a text: `https://user:password@host/key` becomes `https://host`. */
export function withoutSecrets(text) {
  // The text is cut between words, because half an address could end within a password.
  const short = text.length > MAX_TEXT ? text.slice(0, MAX_TEXT).replace(/\S*$/, '') : text;
  return short.replaceAll(ADDRESS, '$1$2');
}

/** A text without percent-encoding. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The parts of an address that a text may not contain, the longest first. */
function secretsOf(address) {
  const { password, search, searchParams, username, pathname } = new URL(address);
  const keys = [username, ...pathname.split('/')].filter((part) => part.length >= KEY_LENGTH);
  const values = [password, search.slice(1), ...searchParams.values()].filter((part) => part.length >= SECRET_LENGTH);
  const all = new Set([...keys, ...values].flatMap((part) => [part, decoded(part)]));
  return [...all].sort((a, b) => b.length - a.length);
}

/**
 * Returns a function like {@link withoutSecrets} that also removes the secrets of this address where they are not part of an address.
 * @param {string | URL} address
 */
export function maskOf(address) {
  const secrets = secretsOf(address);
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '...'), withoutSecrets(text));
}

/** A response whose error messages are masked. Masking comes before the module shortens the messages, because a cut secret is not recognised. */
export function masked(bytes, mask) {
  const text = new TextDecoder().decode(bytes);
  let count = 0;
  let changed = false;
  const after = text.replaceAll(MESSAGE, (all, name, literal) => {
    count += 1;
    const words = count > MOST_MESSAGES ? '""' : maskedLiteral(literal, mask);
    changed ||= words !== literal;
    return name + words;
  });
  return changed ? new TextEncoder().encode(after) : bytes;
}

/** Masks a JSON string; returns the same literal if there is nothing to mask. */
function maskedLiteral(literal, mask) {
  try {
    const words = JSON.parse(literal);
    const rest = mask(words);
    return rest === words ? literal : JSON.stringify(rest);
  } catch {
    return literal;
  }
}
