// What the pages of one origin may ask for at a time, so that one page does not take the client away from the others.

/** Most requests in progress, of all pages of an origin. */
const PENDING = 32;

/** Requests that may follow each other at once, and how many more each second allows. */
const BURST = 200;
const PER_SECOND = 50;

/** Most origins whose budgets are remembered. */
const ORIGINS = 1_000;

const budgets = new Map();

/** The budget of an origin: `enter()` returns whether a request may start, and `leave()` follows its end. */
export function budgetOf(origin) {
  const known = budgets.get(origin);
  if (known) return known;
  if (budgets.size >= ORIGINS) forget();
  const made = budget();
  budgets.set(origin, made);
  return made;
}

/** Forgets the oldest budget without requests in progress. */
function forget() {
  const [idle] = [...budgets].find(([, { isIdle }]) => isIdle()) ?? [];
  budgets.delete(idle);
}

/** @param {() => number} [now] milliseconds of a monotonic clock */
export function budget(now = () => performance.now()) {
  let pending = 0;
  let left = BURST;
  let last = now();
  return {
    isIdle: () => pending === 0,
    enter() {
      const time = now();
      left = Math.min(BURST, left + ((time - last) * PER_SECOND) / 1_000);
      last = time;
      if (pending >= PENDING || left < 1) return false;
      left -= 1;
      pending += 1;
      return true;
    },
    leave() {
      pending -= 1;
    },
  };
}
