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

  // A copy of the package's rules (chains.js).

  // Rules of wallets: begin

  /** Methods that a wallet answers. */
  const WALLETS = /^(?:wallet_|personal_|eth_(?:send(?!Raw)|sign|(?:accounts|requestAccounts|decrypt|getEncryptionPublicKey)$))/;

  /**
   * Methods that sign or send. A wallet on another chain would sign for that one, while reads are proven for this one. Transactions
   * that are signed already (`eth_sendRaw...`) need no wallet.
   */
  const SIGNING = /^(?:eth|personal|wallet)_(?:send(?!Raw)|sign)/;

  /** Methods of wallets about accounts, permissions and earlier requests, which concern no chain. Others concern the wallet's chain. */
  const CHAINLESS =
    /^(?:eth_(?!send|sign)\w+|personal_(?!send|sign)\w+|wallet_(?:(?:switch|add)EthereumChain|(?:get|request|revoke)Permissions|getCapabilities|(?:get|show)CallsStatus|registerOnboarding|scanQRCode))$/;

  /** Methods that switch to a chain or add one. */
  const SWITCHES = /^wallet_(?:switch|add)EthereumChain$/;

  /** Methods whose subject, a transaction or several calls (EIP-5792), names its chain. */
  const NAMES_CHAIN = /(?:Transaction(?:Sync)?|Calls)$/;

  /** Methods whose texts are signed as they are. */
  const SIGNS_TEXT = /^(?:personal|eth)_sign$/;

  /** Depth of lists and objects to which a request is read. */
  const DEEPEST = 32;

  /** A chain id as a number, from `0x` hexadecimal or from the plain number that some wallets return. */
  function numberOf(id) {
    if (!['string', 'number', 'bigint'].includes(typeof id) || id === '') return undefined;
    try {
      return BigInt(id);
    } catch {
      return undefined;
    }
  }

  /**
   * Every chain id in the parameters of a request, as it is written there: members `chainId`, and lists of chains (`chainIds`, `chains`),
   * in lists and objects at any depth, also of a text of JSON, and the chains of CAIP-2 (`eip155:30`). Of typed data (EIP-712) only the
   * domain names a chain; the message is up to its contract.
   */
  function chainsIn(method, params) {
    const isText = SIGNS_TEXT.test(method);
    // Parameters may hold a part many times, and parts that hold themselves.
    const seen = new Set();
    const listedOnce = new Set();
    function inText(text, depth) {
      if (isText) return [];
      const [, chain] = /^eip155:([^:]*)/.exec(text) ?? [];
      if (chain !== undefined) return [chain];
      if (!/^\s*[[{]/.test(text)) return [];
      try {
        return inside(JSON.parse(text), depth + 1);
      } catch {
        return [];
      }
    }
    /** A list of chains: numbers, texts and objects that name one. */
    function listed(list, depth) {
      if (!Array.isArray(list)) return typeof list === 'object' ? inside(list, depth) : listed([list], depth);
      if (listedOnce.has(list)) return [];
      listedOnce.add(list);
      return list.flatMap((chain) => {
        if (chain == null) return [];
        const isId = Array.isArray(chain) || (typeof chain === 'string' ? !chain.includes(':') : typeof chain !== 'object');
        return isId ? [chain] : inside(chain, depth + 1);
      });
    }
    function inside(value, depth) {
      if (!value || !['string', 'object'].includes(typeof value) || seen.has(value)) return [];
      seen.add(value);
      if (typeof value === 'string') return inText(value, depth);
      if (depth > DEEPEST) return ['of parameters that are nested too deeply'];
      const isTyped = [value.types, value.domain, value.message].every((part) => part && typeof part === 'object');
      return Object.entries(value).flatMap(([name, part]) => {
        if (isTyped && (name === 'types' || name === 'message')) return [];
        if (/^chain_?id$/i.test(name)) return part == null ? [] : [part];
        if (/^(?:chain_?ids|chains)$/i.test(name)) return listed(part, depth + 1);
        return [...inText(name, depth), ...inside(part, depth + 1)];
      });
    }
    return inside(params, 0);
  }

  /** The first chain in the parameters of a request that is not the served one, in words. */
  function otherChain(method, params, served) {
    const [other] = chainsIn(method, params).filter((id) => numberOf(id) !== BigInt(served));
    return other === undefined ? undefined : String(typeof other === 'object' ? 'that is not a number' : other).slice(0, 80);
  }

  /** Names the chain in a transaction or in calls, so that a wallet that switches to another chain meanwhile does not sign them. */
  function withChain(method, params, served) {
    if (!NAMES_CHAIN.test(method) || !params || typeof params !== 'object') return params;
    const named = (subject) => (subject && typeof subject === 'object' ? { ...subject, chainId: subject.chainId ?? served } : subject);
    return Array.isArray(params) ? [named(params[0]), ...params.slice(1)] : named(params);
  }

  // Rules of wallets: end

  let followed;
  /** How many changes of its chain the wallet has told. */
  let changes = 0;

  /** The user's wallet, whose changes of accounts are passed on from now on. A page may have put this provider into its place. */
  function walletOf() {
    const wallet = window.ethereum;
    if (!wallet || wallet === provider) return undefined;
    if (wallet !== followed) {
      followed = wallet;
      wallet.on?.('accountsChanged', (accounts) => wallet === followed && emit('accountsChanged', accounts));
      wallet.on?.('chainChanged', () => (changes += 1));
    }
    return wallet;
  }

  /** The chain of the wallet. An answer during which the wallet has told of a change may name the former chain. */
  async function chainOf(wallet) {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const before = changes;
      const chain = await wallet.request({ method: 'eth_chainId' });
      if (before === changes) return chain;
    }
    throw failure({ code: 4901, message: 'the wallet is changing its chain: ask again once it has' });
  }

  async function sameChain(method, params) {
    const wanted = chainsIn(method, params).map(numberOf);
    if (wanted.length === 0 || wanted.includes(undefined)) throw failure({ code: -32602, message: 'give the chain as [{chainId}], 0x hexadecimal' });
    const served = await prove('eth_chainId', []);
    if (otherChain(method, params, served)) throw failure({ code: 4902, message: `this extension serves chain ${served} only` });
  }

  /** What the provider itself says in place of a wallet. */
  function withoutWallet(method) {
    if (method === 'eth_accounts') return [];
    if (SWITCHES.test(method)) return null;
    const code = SIGNING.test(method) || method === 'eth_requestAccounts' ? 4100 : 4200;
    // ethers knows these words, and its `getSigner` reads the text in `data` only.
    const message = `the method ${method} does not exist/is not available: this page has no wallet`;
    throw failure({ code, message, data: { message } });
  }

  const elsewhere = (what, served) => failure({ code: 4901, message: `${what}, and answers are proven for ${served}: switch the wallet first` });

  async function ofWallet(method, params) {
    if (SWITCHES.test(method)) await sameChain(method, params);
    const wallet = walletOf();
    if (!wallet) return withoutWallet(method);
    const isFree = CHAINLESS.test(method);
    if (isFree && chainsIn(method, params).length === 0) return wallet.request({ method, params });
    const served = await prove('eth_chainId', []);
    const selected = isFree ? served : await chainOf(wallet);
    if (BigInt(served) !== numberOf(selected)) throw elsewhere(`the wallet is on chain ${selected}`, served);
    const other = otherChain(method, params, served);
    if (other !== undefined) throw elsewhere(`${method} names chain ${other}`, served);
    return wallet.request({ method, params: isFree ? params : withChain(method, params, served) });
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
