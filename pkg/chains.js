// Which requests go to the user's wallet, and which chains they name: wallet.js refuses a request about another chain than the provider's.
// examples/extension/page.js has a copy of these rules, because scripts that an extension adds to a page cannot import modules;
// pkg/test/wallet-rules.test.mjs compares both.

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

export { CHAINLESS, SIGNING, SWITCHES, WALLETS, chainsIn, numberOf, otherChain, withChain };
