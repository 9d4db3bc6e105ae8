// EIP-1193 events out of a module's answers: `eth_subscribe` installs a subscription in the module, and what is new of
// it is asked for whenever the module reports that its chain has changed.
import { disconnected, failure } from './life.js';

/** The module's code for a subscription that it no longer has: a page may sleep for longer than it is kept. */
const NOT_FOUND = -32000;

/** JSON-RPC: the parameters are unusable. */
const INVALID_PARAMS = -32602;

/** Methods after which there may be something to tell. */
const SENDS = /^eth_send|^evm_|^anvil_|^hardhat_|^mnr_submit/;

const hexadecimal = (number) => `0x${number.toString(16)}`;

/** A call as it is now, whatever becomes of the caller's objects. */
function copied({ method, params }) {
  try {
    return structuredClone({ method, params });
  } catch (error) {
    throw failure(INVALID_PARAMS, `the parameters cannot be copied: ${error.message}`);
  }
}

/**
 * @param {(call: {method: string, params?: readonly unknown[]}, quiet?: boolean) => Promise<unknown>} ask the module;
 * quietly where nobody waits for it
 * @param {number} interval milliseconds between two looks while nothing is reported
 */
export function withEvents(ask, interval) {
  const listeners = new Map();
  /** Subscriptions by the id that their owner knows: see {@link added}. */
  const subscriptions = new Map();
  let timer;
  let closed;

  function emit(event, value) {
    for (const listener of listeners.get(event) ?? []) {
      try {
        listener(value);
      } catch (error) {
        console.error(error);
      }
    }
  }

  /** The head's number now; undefined where the module refuses to say. */
  const head = () => ask({ method: 'eth_blockNumber', params: [] }, true).then(Number, () => undefined);

  /** Keeps a subscription: how it was made, its id in the module now, and the block up to which all was told. */
  function added(subscription, call, seen) {
    subscriptions.set(subscription, { call, id: subscription, seen, looking: false, again: false });
    watch();
  }

  /** Makes a subscription again that the module has dropped, and tells which blocks it may have missed. */
  async function renew(subscription, made) {
    const seen = await made.seen;
    made.id = await ask(made.call, true);
    made.seen = head();
    const now = await made.seen;
    if (!subscriptions.has(subscription)) return void ask({ method: 'eth_unsubscribe', params: [made.id] }, true).catch(() => {});
    if (seen === undefined || now === undefined || now <= seen) return;
    const data = { subscription, fromBlock: hexadecimal(seen + 1), toBlock: hexadecimal(now) };
    emit('message', { type: 'rootlight_gap', data });
  }

  /** Tells what is new of one subscription. What cannot be proven now is told later. */
  async function tell(subscription, made) {
    const seen = head();
    let results;
    try {
      results = await ask({ method: 'eth_getFilterChanges', params: [made.id] }, true);
    } catch (error) {
      // Where it cannot be made again now, it is tried at the next look.
      if (error.code === NOT_FOUND && subscriptions.has(subscription)) await renew(subscription, made).catch(() => {});
      return;
    }
    made.seen = seen;
    for (const result of results) {
      // It may have been ended by what was told before.
      if (!subscriptions.has(subscription)) return;
      emit('message', { type: 'eth_subscription', data: { subscription, result } });
    }
  }

  /** Looks at one subscription, once at a time: a look that hangs keeps nothing from the others. */
  async function look(subscription, made) {
    made.again = true;
    if (made.looking) return;
    made.looking = true;
    while (made.again && subscriptions.has(subscription)) {
      made.again = false;
      await tell(subscription, made);
    }
    made.looking = false;
  }

  /** The module's chain may have changed. */
  const changed = () => Promise.all(Array.from(subscriptions, ([subscription, made]) => look(subscription, made)));

  function watch() {
    if (subscriptions.size === 0) {
      clearInterval(timer);
      timer = undefined;
    } else if (timer === undefined) {
      timer = setInterval(changed, interval);
      // Node.js is not kept running for it.
      timer.unref?.();
    }
  }

  async function subscribe(call) {
    const copy = copied(call);
    const seen = head();
    const subscription = await ask(copy);
    if (closed) throw closed;
    added(subscription, copy, seen);
    return subscription;
  }

  async function request(call) {
    if (closed) throw closed;
    const given = call?.params?.[0];
    const known = call?.method === 'eth_unsubscribe' ? subscriptions.get(given) : undefined;
    if (known) {
      subscriptions.delete(given);
      watch();
      await ask({ method: call.method, params: [known.id] });
      return true;
    }
    if (call?.method === 'eth_subscribe') return subscribe(call);
    const result = await ask(call);
    if (SENDS.test(call.method)) void changed();
    return result;
  }

  return {
    changed,
    /** What a provider shows of all this. */
    provider: {
      request,
      on(event, listener) {
        listeners.set(event, [...(listeners.get(event) ?? []), listener]);
        return this;
      },
      removeListener(event, listener) {
        const all = listeners.get(event) ?? [];
        const last = all.lastIndexOf(listener);
        listeners.set(event, all.filter((_, place) => place !== last));
        return this;
      },
    },
    /** Ends all subscriptions, for a reason. */
    close(reason = disconnected('the provider is closed')) {
      closed = reason;
      subscriptions.clear();
      watch();
      emit('disconnect', reason);
    },
  };
}
