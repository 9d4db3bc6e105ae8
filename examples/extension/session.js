// One page's connection to the client. It may use methods that read the chain, and only filters and subscriptions of its own.
import { errorForPage, resultForPage } from './words.js';

/** Longest request, in characters of JSON. */
const LONGEST = 256 * 1024;

/** Most filters and subscriptions of one page. */
const MOST_FILTERS = 16;

/** Methods for pages. Others show the user's nodes (rootlight_upstreams, net_peerList), or are not for pages at all. */
const FOR_PAGES = /^(eth_\w+|rsk_\w+|web3_\w+|net_version|net_listening|rootlight_verification|rootlight_syncStatus|rootlight_checkpoint)$/;

/** Refusals in a row for the site's budget after which the connection ends. content.js lets a page make fewer. */
const MOST_REFUSALS = 1_000;

const MAKES = new Set(['eth_subscribe', 'eth_newFilter', 'eth_newBlockFilter', 'eth_newPendingTransactionFilter']);
const USES = new Set(['eth_getFilterChanges', 'eth_getFilterLogs', 'eth_uninstallFilter', 'eth_unsubscribe']);

const failure = (code, message) => Object.assign(new Error(message), { code });

/** The error of a request for its page. */
const shown = ({ code = -32603, message, data }) => ({ code, message: String(message), ...(data !== undefined && { data }) });

/** Checks what a page sent. */
function checked(message) {
  const { method, params } = message ?? {};
  if (typeof method !== 'string' || (params !== undefined && typeof params !== 'object')) throw failure(-32600, 'give a method and params');
  if (JSON.stringify(message).length > LONGEST) throw failure(-32005, `a request has at most ${LONGEST} characters`);
  if (!FOR_PAGES.test(method)) throw failure(4200, `${method}: pages cannot use this method`);
  return { method, params };
}

/**
 * @param {{postMessage: Function, disconnect: Function}} port
 * @param {(method: string) => Promise<{request: Function}>} provider the client of the page's origin for a method
 * @param {{enter: () => boolean, leave: () => void}} budget of the page's site
 * @param {() => void} [onEnd] called once, when the connection ends from whichever side
 * @param {boolean} [isOwn] whether the page is the extension's, which gets the client's own words of failures
 */
export function sessionOf(port, provider, budget, onEnd = () => {}, isOwn = false) {
  /** The page's filters and subscriptions: their clients, and the methods that end them. */
  const own = new Map();
  let making = 0;
  let ended = false;
  let refusals = 0;
  const post = (message) => {
    if (!ended) port.postMessage(message);
  };

  async function answer(call) {
    const { method, params } = call;
    if (USES.has(method) && !own.has(params?.[0])) throw failure(-32000, 'filter not found');
    if (MAKES.has(method) && own.size + making >= MOST_FILTERS) throw failure(-32005, `a page has at most ${MOST_FILTERS} filters and subscriptions`);
    making += MAKES.has(method) ? 1 : 0;
    try {
      const [client, result] = await asked(call);
      if (MAKES.has(method)) await made(client, method, result);
      if (method === 'eth_uninstallFilter' || method === 'eth_unsubscribe') own.delete(params[0]);
      return isOwn ? result : resultForPage(result, method);
    } finally {
      making -= MAKES.has(method) ? 1 : 0;
    }
  }

  /** The client for a call, and its result. */
  async function asked(call) {
    const { method, params } = call;
    const shortened = (of) => (error) => Promise.reject(isOwn ? error : errorForPage(error, of));
    const client = USES.has(method) ? own.get(params[0]).client : await provider(method).catch(shortened());
    return [client, await client.request(call).catch(shortened(method))];
  }

  async function made(client, method, id) {
    const end = () => client.request({ method: method === 'eth_subscribe' ? 'eth_unsubscribe' : 'eth_uninstallFilter', params: [id] }).catch(() => {});
    if (ended) await end();
    else own.set(id, { client, end });
  }

  /** Refuses a request for the site's budget. */
  function refuse(id) {
    post({ id, error: shown(failure(-32005, 'this site asks for too much at a time')), isBusy: true });
    refusals += 1;
    if (refusals >= MOST_REFUSALS) end();
  }

  /** Ends the filters and subscriptions of the page, and its connection. */
  function end() {
    if (ended) return;
    ended = true;
    onEnd();
    for (const { end: stop } of own.values()) void stop();
    own.clear();
    port.disconnect();
  }

  return {
    async take({ id, ...message }) {
      if (!Number.isSafeInteger(id)) return;
      if (!budget.enter()) return refuse(id);
      refusals = 0;
      try {
        post({ id, result: await answer(checked(message)) });
      } catch (error) {
        post({ id, error: shown(error) });
      } finally {
        budget.leave();
      }
    },
    /** Tells the page whether nodes answer. */
    tell: (connection) => post({ connection: isOwn || connection.chainId !== undefined ? connection : errorForPage(connection) }),
    /** Passes on an event of a client, if it is of a subscription of this page. */
    emit(event, client) {
      if (own.get(event.data?.subscription)?.client === client) post({ event });
    },
    end,
  };
}
