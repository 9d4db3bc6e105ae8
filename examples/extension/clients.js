// The clients of the extension: one reads for all pages, and each origin that sends transactions has one more of its own. A client
// shows the transactions that were sent through it, and the nonces after them, before they are mined; other sites must not see them.
import { clientOf } from './client.js';

/** Most origins with a client of their own at a time. */
const MOST_SENDERS = 8;

/** Methods that send. */
const SENDS = /send/i;

const failure = (code, message) => Object.assign(new Error(message), { code });

/**
 * @param {(origin?: string) => Promise<{on: Function, close: () => void}>} open opens the client of an origin, or the one of all pages
 */
export function clientsFor(open) {
  const all = clientOf(() => open());
  /** By origin, the one that sent last at the end. */
  const senders = new Map();
  /** The number of connections of each origin. */
  const pages = new Map();

  function senderOf(origin) {
    const sender = senders.get(origin) ?? made(origin);
    senders.delete(origin);
    senders.set(origin, sender);
    return sender;
  }

  function made(origin) {
    if (senders.size >= MOST_SENDERS) {
      const [idle] = [...senders.keys()].filter((other) => !pages.has(other));
      if (idle === undefined) throw failure(-32005, 'too many sites send transactions: close the pages of one of them');
      senders.get(idle).end();
      senders.delete(idle);
    }
    return clientOf(() => open(origin));
  }

  return {
    /** The connection of a page: `provider(method)` is a promise of the client for the method. */
    join(origin) {
      pages.set(origin, (pages.get(origin) ?? 0) + 1);
      return {
        provider: async (method) => (SENDS.test(method) || senders.has(origin) ? senderOf(origin) : all).provider(),
        leave() {
          const left = pages.get(origin) - 1;
          if (left > 0) pages.set(origin, left);
          else pages.delete(origin);
        },
      };
    },
    /** Closes all clients; the next requests open others. */
    end() {
      for (const client of [all, ...senders.values()]) client.end();
      senders.clear();
    },
  };
}
