// Tells that no upstream proves state. Stock nodes, as all public ones of Rootstock, have none of the methods that do.
import { isWallets } from './wallet.js';

/** JSON-RPC error code if no upstream gives a proof that verifies. */
const UNAVAILABLE = -32002;

/** The contract of the two-way peg: an account of every Rootstock chain. */
const BRIDGE = '0x0000000000000000000000000000000001000006';

/** What is refused, what is not, and what to do. */
const WORDS =
  'no upstream proves state: all are stock nodes, without `eth_getProof` and `rootlight_getWitness`. Balances, nonces, code, storage and calls are refused; ' +
  'blocks, transactions, receipts and logs are proven. Add an upstream that proves state, such as `rootlight light`, `follow` or `sidecar`, or set the option `unproven`';

/** Whether an error says that the proof of an account was asked for. */
const isOfState = (error) => error?.code === UNAVAILABLE && /\beth_getProof: /.test(error.message);

/**
 * @param {{ask: Function, emit: Function, listens: Function, needsProofs: boolean}} shell `needsProofs` if unproven state is refused
 */
export function stateProofs({ ask, emit, listens, needsProofs }) {
  /** The names of the upstreams if none of them proves state; otherwise undefined. An upstream that was not asked may prove it. */
  async function stock() {
    const { result } = await ask({ method: 'rootlight_upstreams', params: [] }, true);
    const provesNone = result.length > 0 && result.every(({ stateProofs, witnesses }) => stateProofs === false && !witnesses);
    return provesNone ? result.map(({ name }) => name) : undefined;
  }

  return {
    /** Asks the upstreams for a proof, and emits a message if none of them gives any. Nothing is asked while nobody listens. */
    async look() {
      if (!needsProofs || !listens('message')) return;
      await ask({ method: 'eth_getBalance', params: [BRIDGE, 'latest'] }, true).catch(() => {});
      const upstreams = await stock();
      if (upstreams) emit('message', { type: 'rootlight_noStateProofs', data: { upstreams, message: WORDS } });
    },
    /** Requests whose errors say so. */
    explained: (inner) => async (call) => {
      try {
        return await inner(call);
      } catch (error) {
        // Wallets have another meaning for this code.
        if (!isOfState(error) || isWallets(call) || !(await stock().catch(() => undefined))) throw error;
        throw Object.assign(error, { message: `${WORDS}. ${error.message}` });
      }
    },
  };
}
