// The event `verification`: for each answer, what it rests on. Nothing is computed while no listener is registered.

/** Parameter positions of blocks; other methods name the block in their result, or answer about the newest one. */
const BLOCK_AT = {
  eth_getBalance: 1, eth_getCode: 1, eth_getTransactionCount: 1, eth_call: 1, eth_estimateGas: 1, eth_createAccessList: 1,
  eth_getStorageAt: 2, eth_getProof: 2, rsk_getProof: 2, ext_getProof: 2, rsk_getStorageBytesAt: 2, ext_getStorageBytesAt: 2,
  eth_getBlockByNumber: 0, eth_getBlockByHash: 0, eth_getBlockReceipts: 0, eth_getBlocksByNumber: 0,
  eth_getBlockTransactionCountByHash: 0, eth_getBlockTransactionCountByNumber: 0,
  eth_getUncleCountByBlockHash: 0, eth_getUncleCountByBlockNumber: 0,
  eth_getUncleByBlockHashAndIndex: 0, eth_getUncleByBlockNumberAndIndex: 0,
  eth_getTransactionByBlockHashAndIndex: 0, eth_getTransactionByBlockNumberAndIndex: 0,
};

/** Methods that are answered without the chain: constants, computations, and what the client reports about itself. */
const LOCAL = new Set([
  'eth_accounts', 'eth_chainId', 'eth_coinbase', 'eth_hashrate', 'eth_mining', 'eth_netHashrate', 'eth_newPendingTransactionFilter',
  'eth_pendingTransactions', 'eth_protocolVersion', 'eth_requestAccounts', 'eth_submitHashrate', 'eth_submitWork', 'eth_syncing',
  'eth_uninstallFilter', 'eth_unsubscribe', 'ext_protocolVersion', 'rsk_protocolVersion', 'debug_accountTransactionQuota',
  'debug_wireProtocolQueueSize', 'rootlight_checkpoint', 'rootlight_syncStatus', 'rootlight_upstreams',
]);
const LOCAL_NAMESPACE = /^(net_|web3_|rpc[._]|sco_|txpool_)/;

/** Whether a light client answers a method without the chain. */
export const isLocal = (method) => LOCAL.has(method) || LOCAL_NAMESPACE.test(method);

/** Methods that the user's wallet answers. */
const WALLETS = /^(wallet|personal)_|^eth_(send|sign)Transaction$|^eth_sign/;

/** JSON-RPC error code if no upstream gives a proof that verifies. */
const UNAVAILABLE = -32002;

/** The block that an answer is about, as a parameter of `rootlight_verification`. */
function blockOf({ method, params }, result) {
  const at = BLOCK_AT[method];
  const named = at === undefined ? [result].flat().at(-1)?.blockHash : params?.[at];
  return !named || named === 'pending' ? 'latest' : named;
}

/** The level of an answer without a mark of its own. */
function levelOf(method, holdsKeys) {
  if (holdsKeys || isLocal(method)) return 'local';
  if (method === 'eth_sendRawTransaction') return 'forwarded';
  return WALLETS.test(method) ? 'wallet' : 'verified';
}

/**
 * @param {(call: {method: string, params?: readonly unknown[]}) => Promise<{result: unknown, level?: string, start?: string}>} inner
 * @param {{ask: Function, emit: Function, listens: Function, holdsKeys: boolean}} shell
 */
export function verifications(inner, { ask, emit, listens, holdsKeys }) {
  /** Records of misbehaviour that were reported already, as texts. */
  let known = new Set();

  /** The misbehaviour of upstreams that no event has named yet. */
  async function caught() {
    const { result } = await ask({ method: 'rootlight_upstreams', params: [] }, true);
    const records = result.flatMap(({ name, misbehaviour }) => misbehaviour.map((record) => ({ upstream: name, ...record })));
    const texts = records.map((record) => JSON.stringify(record));
    const fresh = records.filter((_, index) => !known.has(texts[index]));
    known = new Set(texts);
    return fresh;
  }

  /** What the answer about a block rests on; null if the chain has no such block. */
  const evidenceOf = (block) =>
    ask({ method: 'rootlight_verification', params: [block] }, true).then(({ result }) => result, () => null);

  async function tell(call, { result, level, start }, error) {
    const { method } = call;
    const reached = error ? 'refused' : level ?? levelOf(method, holdsKeys);
    const evidence = reached === 'verified' ? await evidenceOf(blockOf(call, result)) : null;
    const depth = evidence ? Number(evidence.depth) : null;
    const marks = { ...(start && { start }), ...(error && { error: { code: error.code, message: error.message } }) };
    emit('verification', { method, level: evidence?.level ?? reached, depth, evidence, ...marks, caught: holdsKeys ? [] : await caught() });
  }

  async function told(call) {
    try {
      const answer = await inner(call);
      void tell(call, answer).catch(() => {});
      return answer;
    } catch (error) {
      if (error?.code === UNAVAILABLE) void tell(call, {}, error).catch(() => {});
      throw error;
    }
  }

  return (call) => (listens('verification') ? told(call) : inner(call));
}
