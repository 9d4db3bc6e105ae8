// Answers methods about accounts and signatures: by the user's wallet (the option `signer`), by a development chain that holds keys, or by a refusal
// if there is neither. The error codes are those of EIP-1193 and EIP-3326.
import { CHAINLESS, SIGNING, SWITCHES, WALLETS, chainsIn, numberOf, otherChain, withChain } from './chains.js';
import { failure } from './life.js';

/** The user has not allowed the method, or the provider has no account for it. */
const UNAUTHORIZED = 4100;

/** The provider does not have the method. */
const UNSUPPORTED = 4200;

/** The wallet is on another chain than the provider. */
const OTHER_CHAIN = 4901;

/** The provider does not serve the chain. */
const UNKNOWN_CHAIN = 4902;

/** JSON-RPC error codes of an absent method and of invalid parameters. */
const NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/** Whether a call is one that the user's wallet answers, or the provider in its place if there is no wallet. */
export function isWallets(call) {
  const method = call?.method;
  return typeof method === 'string' && WALLETS.test(method);
}

/**
 * Adds accounts and signatures to a provider. Returns the function that answers all calls, and `close`, which stops listening to the wallet.
 * @param {(call: {method: string, params?: readonly unknown[] | object}) => Promise<{result: unknown}>} inner answers all other methods
 * @param {{signer?: object, holdsKeys: boolean, emit: (event: string, value: unknown) => void, reason: () => Error | undefined}} options `signer` is an EIP-1193
 * provider; `holdsKeys` if `inner` has accounts of its own; `reason()` is the reason for the provider's end, once it has ended
 */
export function withWallet(inner, { signer, holdsKeys, emit, reason }) {
  /** The provider's chain id. */
  const chain = async () => (await inner({ method: 'eth_chainId', params: [] })).result;
  const withoutWallet = holdsKeys ? answeredByChain(inner) : refused;
  const selected = signer && chainOf(signer);
  /** Throws the reason once the provider is closed: a wallet may still send events then, and a call may still run. */
  const stopIfClosed = () => {
    if (reason()) throw reason();
  };
  const answer = signer ? forwarded(signer, chain, selected, stopIfClosed) : withoutWallet;
  // The wallet's event is not passed on as `chainChanged`: the provider stays on its chain, and libraries would take it for another one.
  async function emitChain(chainId) {
    const signs = numberOf(chainId) === BigInt(await chain());
    if (!reason()) emit('message', { type: 'rootlight_walletChain', data: { chainId, signs } });
  }
  /** The events of the wallet so far. Each is emitted after the one before, so that a page ends with the wallet's last chain. */
  let emitted = Promise.resolve();
  /** What to do with each event of the wallet. */
  const handlers = {
    accountsChanged: (accounts) => reason() || emit('accountsChanged', accounts),
    chainChanged(chainId) {
      selected.changed();
      emitted = emitted.then(() => emitChain(chainId)).catch(() => {});
    },
  };
  /** Answers a method that wallets answer. */
  async function ofWallet({ method, params = [] }) {
    stopIfClosed();
    if (SWITCHES.test(method)) await sameChain(method, params, chain);
    return answer(method, params);
  }
  const listeners = Object.entries(handlers);
  for (const [event, listener] of listeners) signer?.on?.(event, listener);
  return {
    requestWithLevel: (call) => (isWallets(call) ? ofWallet(call) : inner(call)),
    close: () => listeners.forEach((listener) => signer?.removeListener?.(...listener)),
  };
}

/** Checks that a request to switch to a chain, or to add one, means the provider's own chain. */
async function sameChain(method, params, chain) {
  const wanted = chainsIn(method, params).map(numberOf);
  if (wanted.length === 0 || wanted.includes(undefined)) throw failure(INVALID_PARAMS, 'give the chain as [{chainId}], 0x hexadecimal');
  const served = await chain();
  if (otherChain(method, params, served)) {
    throw failure(UNKNOWN_CHAIN, `this provider serves chain ${served} only: create a provider for the other network`);
  }
}

/** How often a wallet is asked for its chain while it changes its chain. */
const ATTEMPTS = 3;

/**
 * The chain of the user's wallet: `changed` notes an event of the wallet, and `now` returns the chain. If an event comes while the wallet answers,
 * the answer may name the former chain, and the wallet is asked again.
 */
function chainOf(signer) {
  let changes = 0;
  return {
    changed: () => (changes += 1),
    async now() {
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const before = changes;
        const chain = await signer.request({ method: 'eth_chainId' });
        if (before === changes) return chain;
      }
      throw failure(OTHER_CHAIN, 'the wallet is changing its chain: ask again once it has');
    },
  };
}

/** The refusal of a method that needs keys, in words that the library ethers recognises. Its `getSigner` reads only the text in `data`. */
function keyless(method) {
  const message = `the method ${method} does not exist/is not available: this provider holds no keys: create it with the user's wallet as \`signer\`, or sign with a local account`;
  return Object.assign(failure(UNAUTHORIZED, message), { data: { message } });
}

/** The answers of a provider without any account. */
async function refused(method) {
  if (method === 'eth_accounts') return { result: [] };
  if (SWITCHES.test(method)) return { result: null };
  if (SIGNING.test(method) || method === 'eth_requestAccounts') {
    throw keyless(method);
  }
  throw unsupported(method);
}

/** The refusal of a method that the provider does not have. */
const unsupported = (method) => failure(UNSUPPORTED, `the method ${method} does not exist/is not available: this provider does not have it`);

/** The answers of a development chain, which holds keys. Methods that only wallets have are answered by methods of the chain. */
const answeredByChain = (inner) => {
  const made = async (method, params) => {
    if (method === 'eth_requestAccounts') return inner({ method: 'eth_accounts', params: [] });
    if (method.startsWith('wallet_') && SIGNING.test(method)) throw unsupported(method);
    if (method.startsWith('wallet_')) return refused(method);
    if (method === 'eth_sendTransaction') return inner({ method, params: await withGas(inner, params) });
    return inner({ method, params });
  };
  return (method, params) =>
    made(method, params).catch((error) => {
      throw error.code === NOT_FOUND ? unsupported(method) : error;
    });
};

/**
 * The parameters of a transaction with a gas limit. Libraries leave the limit to wallets; the chain's default is enough for
 * plain transfers only. A transaction that would revert is refused with the reason, as wallets do.
 */
async function withGas(inner, params) {
  const [transaction, ...rest] = Array.isArray(params) ? params : [];
  if (!transaction || typeof transaction !== 'object' || transaction.gas != null || transaction.gasLimit != null) return params;
  const { result: gas } = await inner({ method: 'eth_estimateGas', params: [transaction] });
  return [{ ...transaction, gas }, ...rest];
}

/** The answers of the user's wallet, with the level `wallet`. Its errors are passed on unchanged. */
const forwarded = (signer, chain, wallet, stopIfClosed) => async (method, params) => {
  const ask = async (given) => {
    stopIfClosed();
    return { result: await signer.request({ method, params: given }), level: 'wallet' };
  };
  // A method without a chain may still name one in its parameters.
  const isFree = CHAINLESS.test(method);
  if (isFree && chainsIn(method, params).length === 0) return ask(params);
  const served = await chain();
  const selected = isFree ? served : await wallet.now();
  if (numberOf(selected) !== BigInt(served)) throw elsewhere(`the wallet is on chain ${selected}`, served);
  const other = otherChain(method, params, served);
  if (other !== undefined) throw elsewhere(`${method} names chain ${other}`, served);
  return ask(isFree ? params : withChain(method, params, served));
};

/** The refusal of a request that concerns another chain. */
const elsewhere = (what, served) =>
  failure(OTHER_CHAIN, `${what}, and this provider proves chain ${served}: request wallet_switchEthereumChain first`);
