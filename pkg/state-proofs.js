// Explains to the caller that no upstream proves state, by an event and in errors. Stock nodes, such as all public ones of Rootstock, lack the
// methods that prove it.
import { isWallets } from './wallet.js';

/** JSON-RPC error code if no upstream gives a proof that verifies. */
const UNAVAILABLE = -32002;

/** The contract of the two-way peg: an account of every Rootstock chain. */
const BRIDGE = '0x0000000000000000000000000000000001000006';

/** The text of the event and of errors: which requests are refused, which are not, and what to do. */
const WORDS =
  'no upstream proves state: all are stock nodes, without `eth_getProof` and `rootlight_getWitness`. Balances, nonces, code, storage and calls are refused; ' +
  'blocks, transactions, receipts and logs are proven. Add an upstream that proves state, such as `rootlight light`, `follow` or `sidecar`, or set the option `unproven`';

/** Whether an error is about a request for the proof of an account. */
const isOfState = (error) => /\beth_getProof: /.test(error.message);

/**
 * The part of a provider that explains missing state proofs.
 * @param {{ask: Function, emit: Function, listens: Function, needsProofs: boolean, lost?: () => string | undefined}} shell `needsProofs` if
 * unproven state is refused; `lost` says why no upstream is of use, if none is
 */
export function stateProofs({ ask, emit, listens, needsProofs, lost = () => undefined }) {
  /** The names of the upstreams if none of them proves state; otherwise undefined. An upstream that was not asked may prove it. */
  async function stock() {
    const { result } = await ask({ method: 'rootlight_upstreams', params: [] }, true);
    const provesNone = result.length > 0 && result.every(({ stateProofs, witnesses }) => stateProofs === false && !witnesses);
    return provesNone ? result.map(({ name }) => name) : undefined;
  }

  return {
    /** Requests a proof, which shows what the upstreams offer, and emits a message if none proves state. Does nothing without a listener. */
    async look() {
      if (!needsProofs || !listens('message')) return;
      await ask({ method: 'eth_getBalance', params: [BRIDGE, 'latest'] }, true).catch(() => {});
      const upstreams = await stock();
      if (upstreams) emit('message', { type: 'rootlight_noStateProofs', data: { upstreams, message: WORDS } });
    },
    /** Wraps requests: their errors say that no upstream proves state, or why no upstream is of use. */
    explained: (inner) => async (call) => {
      try {
        return await inner(call);
      } catch (error) {
        // In an error of a wallet the code has another meaning.
        if (error?.code !== UNAVAILABLE || isWallets(call)) throw error;
        const reason = lost();
        if (reason !== undefined && !error.message.includes(reason)) throw Object.assign(error, { message: `${error.message}; ${reason}` });
        if (!isOfState(error) || !(await stock().catch(() => undefined))) throw error;
        throw Object.assign(error, { message: `${WORDS}. ${error.message}` });
      }
    },
  };
}
