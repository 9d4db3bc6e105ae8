// EIP-1193 events out of a module's answers: `eth_subscribe` installs a subscription in the module, and what is new of
// it is asked for whenever the module reports that its chain has changed.

/** The module's code for a subscription that it no longer has: a page may sleep for longer than it is kept. */
const NOT_FOUND = -32000;

/** What a closed provider's `disconnect` event says (EIP-1193). */
const DISCONNECTED = 4900;

/** Methods after which there may be something to tell. */
const SENDS = /^eth_send|^evm_|^anvil_|^hardhat_|^mnr_submit/;

/**
 * @param {(call: {method: string, params?: readonly unknown[]}) => Promise<unknown>} ask the module
 * @param {number} interval milliseconds between two looks while nothing is reported
 */
export function withEvents(ask, interval) {
  const listeners = new Map();
  /** Subscriptions by the id that their owner knows: how they were made, and their id in the module now. */
  const subscriptions = new Map();
  let timer;
  let looking = false;
  let again = false;

  function emit(event, value) {
    for (const listener of listeners.get(event) ?? []) {
      try {
        listener(value);
      } catch (error) {
        console.error(error);
      }
    }
  }

  /** Tells what is new of one subscription. What cannot be proven now is told later. */
  async function tell(subscription, made) {
    let results;
    try {
      results = await ask({ method: 'eth_getFilterChanges', params: [made.id] });
    } catch (error) {
      if (error.code === NOT_FOUND && subscriptions.has(subscription)) {
        made.id = await ask(made.call).catch(() => made.id);
      }
      return;
    }
    for (const result of results) {
      // It may have been ended by what was told before.
      if (!subscriptions.has(subscription)) return;
      emit('message', { type: 'eth_subscription', data: { subscription, result } });
    }
  }

  /** The module's chain may have changed. */
  async function changed() {
    again = true;
    if (looking) return;
    looking = true;
    while (again) {
      again = false;
      for (const [subscription, made] of subscriptions) await tell(subscription, made);
    }
    looking = false;
  }

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

  async function request(call) {
    const given = call?.params?.[0];
    const known = call?.method === 'eth_unsubscribe' ? subscriptions.get(given) : undefined;
    if (known) {
      subscriptions.delete(given);
      watch();
      await ask({ method: call.method, params: [known.id] });
      return true;
    }
    const result = await ask(call);
    if (call.method === 'eth_subscribe') {
      subscriptions.set(result, { call: structuredClone({ method: call.method, params: call.params }), id: result });
      watch();
    } else if (SENDS.test(call.method)) {
      void changed();
    }
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
    /** Ends all subscriptions. */
    close() {
      subscriptions.clear();
      watch();
      emit('disconnect', Object.assign(new Error('the provider is closed'), { code: DISCONNECTED }));
    },
  };
}
