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

/** Methods that sign. A wallet on another chain would sign for that one, while reads are proven for this one. */
const SIGNING = new Set([
  'eth_sendTransaction', 'eth_signTransaction', 'eth_sign', 'personal_sign',
  'eth_signTypedData', 'eth_signTypedData_v1', 'eth_signTypedData_v3', 'eth_signTypedData_v4',
]);

/** Other methods of wallets without a namespace of their own. */
const ACCOUNTS = new Set(['eth_accounts', 'eth_requestAccounts', 'eth_decrypt', 'eth_getEncryptionPublicKey']);

function isWallets(call) {
  const method = call?.method;
  return typeof method === 'string' && (/^(wallet|personal)_/.test(method) || ACCOUNTS.has(method) || SIGNING.has(method));
}

/**
 * @param {(call: {method: string, params?: readonly unknown[]}) => Promise<{result: unknown}>} inner answers all other methods
 * @param {{signer?: object, holdsKeys: boolean, emit: (event: string, value: unknown) => void}} options `signer` is an EIP-1193
 * provider; `holdsKeys` if `inner` has accounts of its own
 */
export function withWallet(inner, { signer, holdsKeys, emit }) {
  const chain = async () => (await inner({ method: 'eth_chainId', params: [] })).result;
  const own = holdsKeys ? held(inner) : refused;
  const answer = signer ? forwarded(signer, chain) : own;
  const told = (accounts) => emit('accountsChanged', accounts);
  async function ofWallet({ method, params = [] }) {
    if (method === 'wallet_switchEthereumChain' || method === 'wallet_addEthereumChain') await sameChain(params, chain);
    return answer(method, params);
  }
  signer?.on?.('accountsChanged', told);
  return {
    requestWithLevel: (call) => (isWallets(call) ? ofWallet(call) : inner(call)),
    close: () => signer?.removeListener?.('accountsChanged', told),
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
  if (SIGNING.has(method) || method === 'eth_requestAccounts') {
    throw failure(UNAUTHORIZED, `${method}: this provider holds no keys: create it with the user's wallet as \`signer\`, or sign with a local account`);
  }
  throw unsupported(method);
}

const unsupported = (method) => failure(UNSUPPORTED, `${method}: this provider does not have the method`);

/** The answers of a chain that holds keys of its own. Methods of wallets that it lacks are made of those it has. */
const held = (inner) => async (method, params) => {
  if (method === 'eth_requestAccounts') return inner({ method: 'eth_accounts', params: [] });
  if (method === 'personal_sign') return inner({ method: 'eth_sign', params: [params[1], params[0]] });
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

/** The answers of the user's wallet. Its errors are passed on unchanged. */
const forwarded = (signer, chain) => async (method, params) => {
  if (!SIGNING.has(method)) return { result: await signer.request({ method, params }) };
  const served = await chain();
  const selected = await signer.request({ method: 'eth_chainId' });
  if (numberOf(selected) !== BigInt(served)) throw elsewhere(`the wallet is on chain ${selected}`, served);
  return { result: await signer.request({ method, params: forChain(method, params, served) }) };
};

/** Names the chain in a transaction, so that a wallet that switches to another chain meanwhile does not sign it. */
function forChain(method, params, served) {
  const [transaction, ...rest] = Array.isArray(params) ? params : [];
  if (!/Transaction$/.test(method) || !transaction || typeof transaction !== 'object') return params;
  const { chainId = served } = transaction;
  if (numberOf(chainId) !== BigInt(served)) throw elsewhere(`the transaction is for chain ${chainId}`, served);
  return [{ ...transaction, chainId }, ...rest];
}

const elsewhere = (what, served) =>
  failure(OTHER_CHAIN, `${what}, and this provider proves chain ${served}: request wallet_switchEthereumChain first`);
