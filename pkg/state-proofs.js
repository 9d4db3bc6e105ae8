// Tells that no upstream proves state. Stock nodes, as all public ones of Rootstock, have none of the methods that do.
import { isWallets } from './wallet.js';

/** JSON-RPC error code if no upstream gives a proof that verifies. */
const UNAVAILABLE = -32002;

/** The contract of the two-way peg: an account of every Rootstock chain. */
const BRIDGE = '0x0000000000000000000000000000000001000006';

/** The refused requests, the others, and advice. */
const WORDS =
  'no upstream proves state: all are stock nodes, without `eth_getProof` and `rootlight_getWitness`. Balances, nonces, code, storage and calls are refused; ' +
  'blocks, transactions, receipts and logs are proven. Add an upstream that proves state, such as `rootlight light`, `follow` or `sidecar`, or set the option `unproven`';

/** Whether an error says that the proof of an account was asked for. */
const isOfState = (error) => /\beth_getProof: /.test(error.message);

/**
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
    /** Asks the upstreams for a proof, and emits a message if none of them gives any. Nothing is asked while there is no listener. */
    async look() {
      if (!needsProofs || !listens('message')) return;
      await ask({ method: 'eth_getBalance', params: [BRIDGE, 'latest'] }, true).catch(() => {});
      const upstreams = await stock();
      if (upstreams) emit('message', { type: 'rootlight_noStateProofs', data: { upstreams, message: WORDS } });
    },
    /** Requests whose errors say so, or why no upstream is of use. */
    explained: (inner) => async (call) => {
      try {
        return await inner(call);
      } catch (error) {
        // Wallets have another meaning for this code.
        if (error?.code !== UNAVAILABLE || isWallets(call)) throw error;
        const reason = lost();
        if (reason !== undefined && !error.message.includes(reason)) throw Object.assign(error, { message: `${error.message}; ${reason}` });
        if (!isOfState(error) || !(await stock().catch(() => undefined))) throw error;
        throw Object.assign(error, { message: `${WORDS}. ${error.message}` });
      }
    },
  };
}
