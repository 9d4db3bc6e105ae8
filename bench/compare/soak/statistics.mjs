// Counts of requests, errors and latencies.

/** Codes of errors that the load provokes: 3 for reverts, -32005 for limits of keys, -32016 for keys that are revoked. */
const EXPECTED = new Set([3, -32005, -32016]);
/** Most unexpected answers that are kept for the report. */
const KEPT = 20;

const add = (map, key, count = 1) => map.set(key, (map.get(key) ?? 0) + count);

export class Statistics {
  requests = 0;
  /** Unexpected answers, as text. */
  faults = [];
  #statuses = new Map();
  #codes = new Map();
  #events = new Map();
  /** Number of answers by bucket. A bucket's longest time is 5 % above that of the bucket before; the first one's is 0.05 ms. */
  #times = new Map();

  /** Counts an answer: its HTTP status (0 over WebSocket), its JSON, and its time in milliseconds. */
  answer(status, body, time, what) {
    this.requests++;
    if (status) add(this.#statuses, status);
    add(this.#times, Math.max(0, Math.ceil(Math.log(time / 0.05) / Math.log(1.05))));
    for (const { error } of Array.isArray(body) ? body : [body]) {
      if (!error) continue;
      add(this.#codes, error.code);
      if (!EXPECTED.has(error.code)) this.fault(`${what}: ${JSON.stringify(error)}`);
    }
  }

  fault(text) {
    if (this.faults.length < KEPT) this.faults.push(text);
    add(this.#events, 'unexpected answers');
  }

  /** Counts something that happened besides requests. */
  event(name) {
    add(this.#events, name);
  }

  /** The HTTP statuses of at least this number, with their counts. */
  statuses(from) {
    return [...this.#statuses].filter(([status]) => status >= from).map(([status, count]) => `${count} x ${status}`);
  }

  #quantile(share) {
    let left = Math.ceil([...this.#times.values()].reduce((sum, count) => sum + count, 0) * share);
    for (const [bucket, count] of [...this.#times].sort(([one], [other]) => one - other)) {
      left -= count;
      if (left <= 0) return 0.05 * 1.05 ** bucket;
    }
    return 0;
  }

  text() {
    const list = (map) => [...map].sort().map(([name, count]) => `${name}: ${count}`).join(', ') || 'none';
    return [
      `requests: ${this.requests}; p50 ${this.#quantile(0.5).toFixed(2)} ms, p99 ${this.#quantile(0.99).toFixed(1)} ms`,
      `HTTP statuses: ${list(this.#statuses)}`,
      `errors by code: ${list(this.#codes)}`,
      `beside requests: ${list(this.#events)}`,
      ...this.faults.map((text) => `unexpected: ${text}`),
    ].join('\n');
  }
}
