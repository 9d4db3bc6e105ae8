// EIP-1193 events: `eth_subscribe` makes a subscription in the WebAssembly module, and this file polls the subscription whenever the module
// reports that its chain has changed, and regularly.
import { disconnected, failure } from './life.js';

/** The module's error code for a subscription that has expired, for instance while the page was suspended. */
const NOT_FOUND = -32000;

/** JSON-RPC error code of invalid parameters. */
const INVALID_PARAMS = -32602;

/** A number as JSON-RPC writes it. */
const hexadecimal = (number) => `0x${number.toString(16)}`;

/** An id of 16 random bytes. */
const randomId = () => crypto.getRandomValues(new Uint8Array(16)).reduce((id, byte) => id + byte.toString(16).padStart(2, '0'), '0x');

/** A copy of a call that does not change when the caller changes its objects. */
function copied({ method, params }) {
  try {
    return structuredClone({ method, params });
  } catch (error) {
    throw failure(INVALID_PARAMS, `the parameters cannot be copied: ${error.message}`);
  }
}

/** The listeners of a provider. If one throws, the others get the event all the same. */
function newListeners() {
  const listeners = new Map();
  const of = (event) => listeners.get(event) ?? [];
  return {
    emit(event, value) {
      for (const listener of of(event)) {
        try {
          listener(value);
        } catch (error) {
          console.error(error);
        }
      }
    },
    /** Whether an event has listeners. */
    listens: (event) => of(event).length > 0,
    /** The public methods of a provider. */
    provider: {
      on(event, listener) {
        listeners.set(event, [...of(event), listener]);
        return this;
      },
      removeListener(event, listener) {
        const last = of(event).lastIndexOf(listener);
        listeners.set(event, of(event).filter((_, position) => position !== last));
        return this;
      },
    },
  };
}

/**
 * @typedef {{result: unknown, level?: string}} Answer
 *
 * Adds events to a client.
 * @param {(call: {method: string, params?: readonly unknown[]}, quiet?: boolean) => Answer | Promise<Answer>} askNow sends a call to
 * the module, and returns the answer itself if the module has it at once; `quiet` if no caller waits for the result
 * @param {number} interval milliseconds between two polls while the module reports no change
 * @param {() => boolean} takeChanged whether the answers since the last call have changed the module's chain or pool
 */
export function withEvents(askNow, interval, takeChanged) {
  const ask = async (call, quiet) => askNow(call, quiet);
  const listeners = newListeners();
  const { emit } = listeners;
  /** Subscriptions by the id that the caller has: see {@link added}. */
  const subscriptions = new Map();
  let timer;
  /** The reason for the end of the provider, once it has ended. */
  let closed;

  /** The number of the current head; undefined if the module refuses to answer. */
  const head = () => ask({ method: 'eth_blockNumber', params: [] }, true).then(({ result }) => Number(result), () => undefined);

  /**
   * Stores a subscription: its call, its id in the module, and the block up to which all events were emitted (a promise). `lost`: the module
   * has dropped it, so that it has to be renewed; `polling`: a poll runs; `again`: another one has to follow.
   */
  function added(subscription, id, call, seen) {
    subscriptions.set(subscription, { call, id, seen, lost: false, polling: false, again: false });
    setTimer();
  }

  /** Renews a subscription that the module has dropped, and emits which blocks it may have missed. */
  async function renew(subscription, record) {
    const seen = await record.seen;
    record.id = (await ask(record.call, true)).result;
    record.lost = false;
    record.seen = head();
    const now = await record.seen;
    if (!subscriptions.has(subscription)) return void ask({ method: 'eth_unsubscribe', params: [record.id] }, true).catch(() => {});
    if (seen === undefined || now === undefined || now <= seen) return;
    const data = { subscription, fromBlock: hexadecimal(seen + 1), toBlock: hexadecimal(now) };
    emit('message', { type: 'rootlight_gap', data });
  }

  /** Emits the new events of one subscription. Events that cannot be proven now are emitted later. */
  async function emitNew(subscription, record) {
    // If the renewal fails, the next poll tries again.
    if (record.lost) return void (await renew(subscription, record).catch(() => {}));
    // Asked for before the changes: the events up to this block are among them.
    const seen = head();
    let answer;
    try {
      answer = await ask({ method: 'eth_getFilterChanges', params: [record.id] }, true);
    } catch (error) {
      if (error.code === NOT_FOUND && subscriptions.has(subscription)) await renew(subscription, record).catch(() => {});
      return;
    }
    record.seen = seen;
    for (const result of answer.result) {
      // A listener may have ended the subscription.
      if (!subscriptions.has(subscription)) return;
      emit('message', { type: 'eth_subscription', data: { ...answer, subscription, result } });
    }
  }

  /** Polls one subscription, one poll at a time. Each subscription has its own polls, so that one that hangs does not delay the others. */
  async function poll(subscription, record) {
    record.again = true;
    if (record.polling) return;
    record.polling = true;
    while (record.again && subscriptions.has(subscription)) {
      record.again = false;
      await emitNew(subscription, record);
    }
    record.polling = false;
  }

  /** Polls all subscriptions, because the module's chain may have changed. */
  const changed = () => Promise.all(Array.from(subscriptions, ([subscription, record]) => poll(subscription, record)));

  /** Runs the timer of polls while there are subscriptions. */
  function setTimer() {
    if (subscriptions.size === 0) {
      clearInterval(timer);
      timer = undefined;
    } else if (timer === undefined) {
      timer = setInterval(changed, interval);
      // The timer does not keep Node.js running.
      timer.unref?.();
    }
  }

  /** Makes a subscription in the module. */
  async function subscribe(call) {
    const copy = copied(call);
    const seen = head();
    const answer = await ask(copy);
    if (closed) throw closed;
    // A subscription of a client that was replaced may have the same id.
    const subscription = subscriptions.has(answer.result) ? randomId() : answer.result;
    added(subscription, answer.result, copy, seen);
    return { ...answer, result: subscription };
  }

  async function requestWithLevel(call) {
    if (closed) throw closed;
    const id = call?.params?.[0];
    const record = call?.method === 'eth_unsubscribe' ? subscriptions.get(id) : undefined;
    if (record) {
      subscriptions.delete(id);
      setTimer();
      if (!record.lost) await ask({ method: call.method, params: [record.id] });
      return { result: true };
    }
    if (call?.method === 'eth_subscribe') return subscribe(call);
    const asked = askNow(call);
    // An answer that is there already is not awaited: that would cost several percent of the time of a short call.
    const answer = asked instanceof Promise ? await asked : asked;
    if (takeChanged()) void changed();
    return answer;
  }

  return {
    changed,
    emit,
    listens: listeners.listens,
    /** The public methods of a provider. */
    provider: {
      request: async (call) => (await requestWithLevel(call)).result,
      requestWithLevel,
      ...listeners.provider,
    },
    /** Makes all subscriptions again, because another client answers from now on, which has other ids. */
    moved() {
      for (const record of subscriptions.values()) record.lost = true;
      void changed();
    },
    /** Called at the end of the provider: ends all subscriptions and emits `disconnect` with the reason. */
    close(reason = disconnected('the provider is closed')) {
      closed = reason;
      subscriptions.clear();
      setTimer();
      emit('disconnect', reason);
    },
  };
}
