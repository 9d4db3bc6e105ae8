// Waiting in tests, in Node.js and in a page.

/** The option of tests whose time limit only ends what hangs: slow machines take many times as long as others. */
export const LIMIT = { timeout: 180_000 };

/** Resolves after a time in milliseconds. */
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Calls `attempt` until it returns a truthy value, and resolves to that value. `what` names it in the error after
 * `within` milliseconds; `every` is the pause between two attempts.
 */
export async function until(attempt, what, { within = 120_000, every = 20 } = {}) {
  for (const end = Date.now() + within; ; await pause(every)) {
    const value = await attempt();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${within / 1_000} s`);
  }
}
