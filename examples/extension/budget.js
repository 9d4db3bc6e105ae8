// A budget of open requests for the pages of one site, so that one site does not take the client away from the others.

/** Most requests in progress, of all pages of a site. */
const PENDING = 32;

/** Requests that may follow each other at once, and how many more each second allows. */
const BURST = 200;
const PER_SECOND = 50;

/** Most sites whose budgets are remembered. */
const SITES = 1_000;

const budgets = new Map();

/** The budget of a site: `enter()` returns whether a request may start, and `leave()` follows its end. */
export function budgetOf(site) {
  const known = budgets.get(site);
  if (known) return known;
  if (budgets.size >= SITES) forget();
  const made = budget();
  budgets.set(site, made);
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
