// A subscriber to new heads, logs of the token and pending transactions, which counts what it is told.

export class Subscriber {
  /** Names of the events that came, with their number. */
  #events = new Map();
  #kinds = new Map();
  /** Number of events that came. */
  received = 0;
  open = true;
  /** Its API key. */
  key;

  constructor(key) {
    this.key = key;
  }

  /** Subscribes over a new WebSocket. */
  static async open(server, token) {
    const subscriber = new Subscriber(server.key());
    const socket = server.socket(subscriber.key);
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    socket.on('error', () => {});
    socket.once('close', () => (subscriber.open = false));
    const answered = new Map();
    socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (message.id) answered.get(message.id)(message.result);
      else subscriber.#told(message.params);
    });
    let id = 0;
    for (const params of [['newHeads'], ['logs', { address: token }], ['newPendingTransactions']]) {
      const answer = new Promise((resolve) => answered.set(++id, resolve));
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params }));
      subscriber.#kinds.set(await answer, params[0]);
    }
    return subscriber;
  }

  #told({ subscription, result }) {
    const name = eventName(this.#kinds.get(subscription), result);
    this.received++;
    this.#events.set(name, (this.#events.get(name) ?? 0) + 1);
  }

  /** The names of events that did not come, and of those that came without being expected. */
  compare(expected) {
    const left = new Map(this.#events);
    const missing = expected.filter((name) => {
      const count = left.get(name) ?? 0;
      left.set(name, count - 1);
      return count <= 0;
    });
    const excess = [...left].filter(([, count]) => count > 0).map(([name]) => name);
    return { missing, excess };
  }
}

/** A name of an event by which the expected and the received ones are compared. */
export function eventName(kind, result) {
  if (kind === 'newHeads') return `head ${result.hash}`;
  if (kind === 'logs') return `${result.removed ? 'removed ' : ''}log ${result.blockHash} ${result.logIndex}`;
  return `pending ${result}`;
}
