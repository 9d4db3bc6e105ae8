// The provider of a page (EIP-1193), announced by EIP-6963. Reads go to the extension; accounts and signatures to the user's
// wallet, which is another extension.
(() => {
  const waiting = new Map();
  const listeners = new Map();
  /** Subscriptions in the extension's worker. */
  const subscriptions = new Set();
  let next = 0;
  let isConnected = false;
  /** Whether no node answers. What the extension knows is answered still. */
  let isOffline = false;

  const failure = ({ code, message, data }) => Object.assign(new Error(message), { code }, data !== undefined && { data });

  const emit = (event, value) => {
    for (const listener of listeners.get(event) ?? []) {
      try {
        listener(value);
      } catch (error) {
        console.error(error);
      }
    }
  };

  window.addEventListener('message', ({ source, data }) => {
    if (source !== window || data?.from !== 'rootlight-extension') return;
    if (data.event) return emit('message', data.event);
    if (data.connection) return changed(data.connection);
    if (data.lost) return lost();
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) return call?.reject(failure(data.error));
    connected();
    return call?.resolve(data.result);
  });

  /** Emits `connect` at the first answer, and at the first one after `disconnect`. */
  function connected() {
    if (isConnected || isOffline) return;
    isConnected = true;
    prove('eth_chainId', []).then((chainId) => emit('connect', { chainId }), () => {});
  }

  /** The extension's nodes have gone, or are back. */
  function changed({ chainId, ...error }) {
    isOffline = chainId === undefined;
    if (isConnected === !isOffline) return;
    isConnected = !isOffline;
    if (isOffline) emit('disconnect', failure(error));
    else emit('connect', { chainId });
  }

  /** The extension's worker has ended. A page without requests and subscriptions has lost nothing: the next request starts it again. */
  function lost() {
    const error = failure({ code: 4900, message: 'the extension was restarted: ask again, and subscribe again' });
    const calls = [...waiting.values()];
    isOffline = false;
    const isNoticed = isConnected && calls.length + subscriptions.size > 0;
    waiting.clear();
    subscriptions.clear();
    for (const { reject } of calls) reject(error);
    if (!isNoticed) return;
    isConnected = false;
    emit('disconnect', error);
  }

  const prove = (method, params) =>
    new Promise((resolve, reject) => {
      next += 1;
      try {
        window.postMessage({ from: 'rootlight-page', id: next, method, params }, window.origin);
        waiting.set(next, { resolve, reject });
      } catch (error) {
        reject(failure({ code: -32600, message: `method and params must be representable as JSON: ${error.message}` }));
      }
    });

  async function ofWorker(method, params) {
    const result = await prove(method, params);
    if (method === 'eth_subscribe') subscriptions.add(result);
    if (method === 'eth_unsubscribe') subscriptions.delete(params?.[0]);
    return result;
  }

  // The rules for wallets are those of the package (wallet.js).
  const SIGNS = /^(eth|personal|wallet)_(send(?!Raw)|sign)/;
  const WALLETS = /^(wallet_|personal_|eth_(send(?!Raw)|sign|(accounts|requestAccounts|decrypt|getEncryptionPublicKey)$))/;
  const SWITCHES = /^wallet_(switch|add)EthereumChain$/;
  const NAMES_CHAIN = /(Transaction|Calls)$/;

  let followed;

  /** The user's wallet, whose changes of accounts are passed on from now on. A page may have put this provider into its place. */
  function walletOf() {
    const wallet = window.ethereum;
    if (!wallet || wallet === provider) return undefined;
    if (wallet !== followed) {
      followed = wallet;
      wallet.on?.('accountsChanged', (accounts) => wallet === followed && emit('accountsChanged', accounts));
    }
    return wallet;
  }

  /** A chain id as a number, from `0x` hexadecimal or from the plain number that some wallets return. */
  function numberOf(id) {
    try {
      return id == null || id === '' ? undefined : BigInt(id);
    } catch {
      return undefined;
    }
  }

  async function sameChain(params) {
    const wanted = numberOf(params?.[0]?.chainId);
    if (wanted === undefined) throw failure({ code: -32602, message: 'give the chain as [{chainId}], 0x hexadecimal' });
    const served = await prove('eth_chainId', []);
    if (wanted !== BigInt(served)) throw failure({ code: 4902, message: `this extension serves chain ${served} only` });
  }

  /** What the provider itself says in place of a wallet. */
  function withoutWallet(method) {
    if (method === 'eth_accounts') return [];
    if (SWITCHES.test(method)) return null;
    const code = SIGNS.test(method) || method === 'eth_requestAccounts' ? 4100 : 4200;
    throw failure({ code, message: `${method}: this page has no wallet` });
  }

  const elsewhere = (what, served) => failure({ code: 4901, message: `${what}, and answers are proven for ${served}: switch the wallet first` });

  /** Names the chain in a transaction, so that a wallet that switches to another chain meanwhile does not sign it. */
  function forChain(method, params, served) {
    const [subject, ...rest] = Array.isArray(params) ? params : [];
    if (!NAMES_CHAIN.test(method) || !subject || typeof subject !== 'object') return params;
    const { chainId = served } = subject;
    if (numberOf(chainId) !== BigInt(served)) throw elsewhere(`${method} names chain ${chainId}`, served);
    return [{ ...subject, chainId }, ...rest];
  }

  async function ofWallet(method, params) {
    if (SWITCHES.test(method)) await sameChain(params);
    const wallet = walletOf();
    if (!wallet) return withoutWallet(method);
    if (!SIGNS.test(method)) return wallet.request({ method, params });
    const [served, selected] = await Promise.all([prove('eth_chainId', []), wallet.request({ method: 'eth_chainId' })]);
    if (BigInt(served) !== numberOf(selected)) throw elsewhere(`the wallet is on chain ${selected}`, served);
    return wallet.request({ method, params: forChain(method, params, served) });
  }

  const provider = Object.freeze({
    async request({ method, params }) {
      return WALLETS.test(method) ? ofWallet(method, params) : ofWorker(method, params);
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) ?? []), listener]);
      if (event === 'accountsChanged') walletOf();
      return this;
    },
    removeListener(event, listener) {
      listeners.set(event, (listeners.get(event) ?? []).filter((each) => each !== listener));
      return this;
    },
  });

  const icon =
    'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="seagreen" d="M4 0l4 2v3L4 8 0 5V2z"/></svg>';
  const info = Object.freeze({ uuid: crypto.randomUUID(), name: 'Rootlight (verified)', icon, rdns: 'org.example.rootlight-extension' });
  const detail = Object.freeze({ info, provider });
  const announce = () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }));
  // Wallets that arrive later than the page's listeners.
  window.addEventListener('ethereum#initialized', walletOf);
  window.addEventListener('eip6963:requestProvider', announce);
  announce();
})();
