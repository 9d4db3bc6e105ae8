// The event `verification`, which states the evidence for each answer. Nothing is computed while no listener is registered.
import { isWallets } from './wallet.js';

/**
 * The rows of the core's method table by name: the level of a complete answer, the position of the block among the parameters, and the
 * method that ends what this one makes.
 * @typedef {Record<string, {level: string, block?: number, endedBy?: string}>} Methods
 */

/** JSON-RPC error code if no upstream gives a proof that verifies. */
const UNAVAILABLE = -32002;

/** The block in the parameters of a call, as a parameter of `rootlight_verification`; undefined if the method has none. */
function blockOf({ method, params }, methods) {
  const position = methods[method]?.block;
  if (position === undefined) return undefined;
  const block = params?.[position];
  return !block || block === 'pending' ? 'latest' : block;
}

/** The block that a result names; undefined if it names none. */
function namedBy({ method }, result) {
  if (method === 'eth_blockNumber') return result;
  const last = [result].flat().at(-1);
  return last?.blockHash ?? (/^eth_getBlockBy/.test(method) ? last?.hash : undefined) ?? undefined;
}

/** The level of an answer whose response states none. Answers of the user's wallet always state one. */
const levelOf = (call, holdsKeys, methods) =>
  holdsKeys || isWallets(call) ? 'local' : methods[call.method]?.level ?? 'verified';

/**
 * Wraps requests, so that each emits a `verification` event after its answer.
 * @param {(call: {method: string, params?: readonly unknown[]}) => Promise<{result: unknown, level?: string, start?: string, bitcoin?: string}>} inner
 * @param {{ask: Function, emit: Function, listens: Function, holdsKeys: boolean, methods: () => Methods}} shell
 */
export function verifications(inner, { ask, emit, listens, holdsKeys, methods }) {
  /** Records of misbehaviour that were reported already, as texts. */
  let reported = new Set();

  /** The misbehaviour of upstreams that no event has named yet. */
  async function caught() {
    const { result } = await ask({ method: 'rootlight_upstreams', params: [] }, true);
    const records = result.flatMap(({ name, misbehaviour }) => misbehaviour.map((record) => ({ upstream: name, ...record })));
    const texts = records.map((record) => JSON.stringify(record));
    const fresh = records.filter((_, index) => !reported.has(texts[index]));
    reported = new Set(texts);
    return fresh;
  }

  /** The basis of the answer about a block; null if the chain has no such block. */
  const evidenceOf = (block) =>
    ask({ method: 'rootlight_verification', params: [block] }, true).then(({ result }) => result, () => null);

  /**
   * The evidence for a verified answer: about the block that the result names, otherwise about the block in the parameters. The latter must be the
   * same block `before` and after the answer, since `latest` may have become another block meanwhile; if it is not, there is no evidence.
   */
  async function evidenceFor(call, result, before) {
    const named = namedBy(call, result);
    if (named !== undefined) return evidenceOf(named);
    const [former, block] = [await before, blockOf(call, methods())];
    const evidence = former && (await evidenceOf(block));
    return evidence?.blockHash === former?.blockHash ? evidence ?? null : null;
  }

  /** Emits the event for an answer or an error. */
  async function emitEvent(call, { result, level, start, bitcoin }, before, error) {
    const { method } = call;
    const reached = error ? 'refused' : level ?? levelOf(call, holdsKeys, methods());
    const isVerified = reached === 'verified';
    const evidence = isVerified ? await evidenceFor(call, result, before) : null;
    // The level of the evidence has a remark on networks where work is nearly free. Answers without a block need that remark too.
    const remarked = isVerified ? evidence ?? (await evidenceOf('latest')) : null;
    const depth = evidence ? Number(evidence.depth) : null;
    const marks = { ...(start && { start }), ...(bitcoin && { bitcoin }), ...(error && { error: { code: error.code, message: error.message } }) };
    emit('verification', { method, level: remarked?.level ?? reached, depth, evidence, ...marks, caught: holdsKeys ? [] : await caught() });
  }

  /** Answers a call and emits its event. */
  async function answeredWithEvent(call) {
    const block = blockOf(call, methods());
    const before = block === undefined || holdsKeys ? undefined : evidenceOf(block);
    try {
      const answer = await inner(call);
      void emitEvent(call, answer, before).catch(() => {});
      return answer;
    } catch (error) {
      // In an error of a wallet the code has another meaning.
      if (error?.code === UNAVAILABLE && !isWallets(call)) void emitEvent(call, {}, before, error).catch(() => {});
      throw error;
    }
  }

  return (call) => (listens('verification') && call ? answeredWithEvent(call) : inner(call));
}
