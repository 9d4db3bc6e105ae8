// Limits the messages that an upstream sends over a WebSocket without a request (websocket.js).

/** Milliseconds over which a meter counts. */
const SPAN = 60_000;

/** Milliseconds of one slot of that span. The messages of a slot stop counting together, so that a meter stores at most 60 counts. */
const SLOT = 1_000;

/**
 * A meter of messages and their characters.
 * @param {number} messages the most in any minute
 * @param {number} characters the most in any minute
 * @returns {(length: number) => boolean} counts a message of this length, and returns whether it is within the limits
 */
export function meter(messages, characters) {
  /** Messages and characters of each slot, by its number. */
  const slots = new Map();
  return (length) => {
    const slot = Math.floor(performance.now() / SLOT);
    for (const old of slots.keys()) if (old <= slot - SPAN / SLOT) slots.delete(old);
    const [count, sum] = slots.get(slot) ?? [0, 0];
    slots.set(slot, [count + 1, sum + length]);
    const total = (index) => [...slots.values()].reduce((all, one) => all + one[index], 0);
    return total(0) <= messages && total(1) <= characters;
  };
}
