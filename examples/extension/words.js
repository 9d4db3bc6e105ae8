// A failure as pages see it: its code, and words that are the same for all users. The client's own words may name the user's
// node, and repeat what the node says of them.

/** Words by code, where the client's own may come from a node or from the settings. */
const WORDS = new Map([
  [-32603, 'the extension has failed'],
  [-32002, 'Resource unavailable: the extension has no proof of this now'],
  [1013, 'no node of the extension answers'],
  [4900, 'the extension has no client: name a node in its options, or look there for the reason'],
]);

/** The method whose errors are the nodes' own, with codes of their choice. */
const SENDS = 'eth_sendRawTransaction';

/** An error for a page. */
export function errorForPage({ code = -32603, message, data }, method) {
  const words = method === SENDS ? 'no node of the extension took the transaction' : WORDS.get(code);
  return words === undefined ? { code, message, data } : { code, message: words };
}

/** A result for a page. */
export function resultForPage(result, method) {
  if (method !== 'rootlight_syncStatus' || !result?.fault) return result;
  return { ...result, fault: 'a node of the extension has failed' };
}
