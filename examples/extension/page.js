// The provider of a page (EIP-1193), announced by EIP-6963. Reads go to the extension; accounts and signatures to the user's
// wallet, which is another extension.
(() => {
  const waiting = new Map();
  const listeners = new Map();
  let next = 0;

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
    if (data.lost) {
      for (const { reject } of waiting.values()) reject(failure({ code: 4900, message: 'the extension was restarted: ask again' }));
      return waiting.clear();
    }
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    return data.error ? call?.reject(failure(data.error)) : call?.resolve(data.result);
  });

  const prove = (method, params) =>
    new Promise((resolve, reject) => {
      next += 1;
      waiting.set(next, { resolve, reject });
      window.postMessage({ from: 'rootlight-page', id: next, method, params }, window.origin);
    });

  const SIGNS = /^(eth_sendTransaction|eth_sign\w*|personal_sign)$/;
  const WALLETS = /^(eth_accounts|eth_requestAccounts|wallet_\w+|personal_\w+)$/;

  async function ofWallet(method, params) {
    const wallet = window.ethereum;
    if (!wallet && method === 'eth_accounts') return [];
    if (!wallet) throw failure({ code: 4100, message: `${method}: this page has no wallet` });
    if (SIGNS.test(method)) {
      const [served, selected] = await Promise.all([prove('eth_chainId', []), wallet.request({ method: 'eth_chainId' })]);
      if (BigInt(served) !== BigInt(selected)) {
        throw failure({ code: 4901, message: `the wallet is on chain ${selected}, and answers are proven for ${served}: switch the wallet first` });
      }
    }
    return wallet.request({ method, params });
  }

  const provider = Object.freeze({
    async request({ method, params }) {
      return SIGNS.test(method) || WALLETS.test(method) ? ofWallet(method, params) : prove(method, params);
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) ?? []), listener]);
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
  window.addEventListener('eip6963:requestProvider', announce);
  announce();
})();
