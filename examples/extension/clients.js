// The clients of the extension: one reads for all pages, and each origin that sends transactions has one more of its own. A client
// shows the transactions that were sent through it, and the nonces after them, before they are mined; other sites must not see them.
import { clientOf } from './client.js';

/** Most origins with a client of their own at a time. */
const MOST_SENDERS = 8;

/** The method that sends. Without accounts, no other one has an effect. */
const SENDS = 'eth_sendRawTransaction';

const failure = (code, message) => Object.assign(new Error(message), { code });

/**
 * @param {(origin?: string) => Promise<{on: Function, close: () => void}>} open opens the client of an origin, or the one of all pages
 * @param {(origin: string) => string} siteOf the site of an origin: the places of senders are shared out among sites
 */
export function clientsFor(open, siteOf) {
  const all = clientOf(() => open());
  /** By origin, the one that sent last at the end. */
  const senders = new Map();
  /** The connections of each origin: what to call when its client ends. */
  const pages = new Map();

  function senderOf(origin) {
    const sender = senders.get(origin) ?? made(origin);
    senders.delete(origin);
    senders.set(origin, sender);
    return sender;
  }

  const placesOf = (site) => [...senders.keys()].filter((origin) => siteOf(origin) === site).length;

  /**
   * Whether an origin makes room for one of a site with this many places. Without a page it does for sites with no more places than
   * its own site; with a page, only if its own site has more places even afterwards.
   */
  function yields(origin, places) {
    const own = placesOf(siteOf(origin));
    return pages.has(origin) ? own > places + 1 : own >= places;
  }

  function made(origin) {
    if (senders.size >= MOST_SENDERS) {
      const places = placesOf(siteOf(origin));
      const others = [...senders.keys()].filter((other) => yields(other, places));
      // The site with the most places gives one, rather one without a page, and of these the one that sent longest ago.
      const weight = (other) => 2 * placesOf(siteOf(other)) + (pages.has(other) ? 0 : 1);
      const [former] = others.sort((a, b) => weight(b) - weight(a));
      if (former === undefined) throw failure(-32005, 'too many sites send transactions: close the pages of one of them');
      end(former);
    }
    return clientOf(() => open(origin));
  }

  /** Ends the client of an origin, and tells its pages: their subscriptions have ended with it. */
  function end(origin) {
    senders.get(origin).end();
    senders.delete(origin);
    for (const lost of [...(pages.get(origin) ?? [])]) lost();
  }

  return {
    /**
     * The connection of a page: `provider(method)` is a promise of the client for the method.
     * @param {string} origin
     * @param {() => void} lost called when the client of the origin has made room for that of another site
     */
    join(origin, lost) {
      const own = pages.get(origin) ?? new Set();
      const call = () => lost();
      pages.set(origin, own.add(call));
      return {
        provider: async (method) => (method === SENDS || senders.has(origin) ? senderOf(origin) : all).provider(),
        leave() {
          own.delete(call);
          if (own.size === 0 && pages.get(origin) === own) pages.delete(origin);
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
