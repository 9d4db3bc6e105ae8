// Accounts and signatures: methods of the user's wallet, of a chain that holds keys, or of neither. The error codes are those
// of EIP-1193 and EIP-3326.
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

/**
 * Methods that sign or send. A wallet on another chain would sign for that one, while reads are proven for this one. Transactions
 * that are signed already (`eth_sendRaw...`) need no wallet.
 */
const SIGNING = /^(?:eth|personal|wallet)_(?:send(?!Raw)|sign)/;

/** Methods that a wallet answers. */
const WALLETS = /^(?:wallet_|personal_|eth_(?:send(?!Raw)|sign|(?:accounts|requestAccounts|decrypt|getEncryptionPublicKey)$))/;

/** Methods whose first parameter names a chain: that of a transaction, or of several calls (EIP-5792). */
const NAMES_CHAIN = /(?:Transaction|Calls)$/;

/** Whether the user's wallet answers a call if there is one, and otherwise the provider in its place. */
export function isWallets(call) {
  const method = call?.method;
  return typeof method === 'string' && WALLETS.test(method);
}

/**
 * @param {(call: {method: string, params?: readonly unknown[] | object}) => Promise<{result: unknown}>} inner answers all other methods
 * @param {{signer?: object, holdsKeys: boolean, emit: (event: string, value: unknown) => void}} options `signer` is an EIP-1193
 * provider; `holdsKeys` if `inner` has accounts of its own; `reason()` is the reason for the provider's end, once it has ended
 */
export function withWallet(inner, { signer, holdsKeys, emit, reason }) {
  const chain = async () => (await inner({ method: 'eth_chainId', params: [] })).result;
  const own = holdsKeys ? held(inner) : refused;
  const answer = signer ? forwarded(signer, chain) : own;
  const followed = {
    accountsChanged: (accounts) => emit('accountsChanged', accounts),
    // Not passed on as `chainChanged`: the provider stays on its chain, and libraries would read another one from it.
    async chainChanged(chainId) {
      const signs = numberOf(chainId) === BigInt(await chain());
      emit('message', { type: 'rootlight_walletChain', data: { chainId, signs } });
    },
  };
  async function ofWallet({ method, params = [] }) {
    if (reason()) throw reason();
    if (method === 'wallet_switchEthereumChain' || method === 'wallet_addEthereumChain') await sameChain(params, chain);
    return answer(method, params);
  }
  const listeners = Object.entries(followed).map(([event, work]) => [event, (value) => void Promise.resolve(work(value)).catch(() => {})]);
  for (const [event, listener] of listeners) signer?.on?.(event, listener);
  return {
    requestWithLevel: (call) => (isWallets(call) ? ofWallet(call) : inner(call)),
    close: () => listeners.forEach((listener) => signer?.removeListener?.(...listener)),
  };
}

/** Checks that a request to switch to a chain, or to add one, means the provider's own chain. */
async function sameChain(params, chain) {
  const wanted = numberOf(params?.[0]?.chainId);
  if (wanted === undefined) throw failure(INVALID_PARAMS, 'give the chain as [{chainId}], 0x hexadecimal');
  const served = await chain();
  if (wanted !== BigInt(served)) {
    throw failure(UNKNOWN_CHAIN, `this provider serves chain ${served} only: create a provider for the other network`);
  }
}

/** A chain id as a number, from `0x` hexadecimal or from the plain number that some wallets return. */
function numberOf(id) {
  try {
    return id == null || id === '' ? undefined : BigInt(id);
  } catch {
    return undefined;
  }
}

/** The answers of a provider without any account. */
async function refused(method) {
  if (method === 'eth_accounts') return { result: [] };
  if (method === 'wallet_switchEthereumChain' || method === 'wallet_addEthereumChain') return { result: null };
  if (SIGNING.test(method) || method === 'eth_requestAccounts') {
    throw failure(UNAUTHORIZED, `${method}: this provider holds no keys: create it with the user's wallet as \`signer\`, or sign with a local account`);
  }
  throw unsupported(method);
}

const unsupported = (method) => failure(UNSUPPORTED, `${method}: this provider does not have the method`);

/** The answers of a chain that holds keys of its own. Methods of wallets that it lacks are made of those it has. */
const held = (inner) => async (method, params) => {
  if (method === 'eth_requestAccounts') return inner({ method: 'eth_accounts', params: [] });
  if (method === 'personal_sign') return inner({ method: 'eth_sign', params: [params[1], params[0]] });
  if (method.startsWith('wallet_') && SIGNING.test(method)) throw unsupported(method);
  if (method.startsWith('wallet_')) return refused(method);
  if (method === 'eth_sendTransaction') return inner({ method, params: await withGas(inner, params) });
  return inner({ method, params }).catch((error) => {
    throw error.code === NOT_FOUND ? unsupported(method) : error;
  });
};

/**
 * The parameters of a transaction with a gas limit. Libraries leave it to wallets; the chain's default suits plain transfers
 * only. A transaction that would revert is refused with the reason, as wallets do.
 */
async function withGas(inner, params) {
  const [transaction, ...rest] = Array.isArray(params) ? params : [];
  if (!transaction || typeof transaction !== 'object' || transaction.gas != null || transaction.gasLimit != null) return params;
  const { result: gas } = await inner({ method: 'eth_estimateGas', params: [transaction] });
  return [{ ...transaction, gas }, ...rest];
}

/** The answers of the user's wallet, marked as such. Its errors are passed on unchanged. */
const forwarded = (signer, chain) => async (method, params) => {
  const ask = async (given) => ({ result: await signer.request({ method, params: given }), level: 'wallet' });
  if (!SIGNING.test(method)) return ask(params);
  const served = await chain();
  const selected = await signer.request({ method: 'eth_chainId' });
  if (numberOf(selected) !== BigInt(served)) throw elsewhere(`the wallet is on chain ${selected}`, served);
  return ask(forChain(method, params, served));
};

/** Names the chain in a transaction, so that a wallet that switches to another chain meanwhile does not sign it. */
function forChain(method, params, served) {
  const [subject, ...rest] = Array.isArray(params) ? params : [];
  if (!NAMES_CHAIN.test(method) || !subject || typeof subject !== 'object') return params;
  const { chainId = served } = subject;
  if (numberOf(chainId) !== BigInt(served)) throw elsewhere(`${method} names chain ${chainId}`, served);
  return [{ ...subject, chainId }, ...rest];
}

const elsewhere = (what, served) =>
  failure(OTHER_CHAIN, `${what}, and this provider proves chain ${served}: request wallet_switchEthereumChain first`);
