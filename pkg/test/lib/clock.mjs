// The clock of a test.

/** Runs some work with the clock this many seconds ahead. */
export async function later(seconds, work) {
  const { now } = Date;
  Date.now = () => now.call(Date) + seconds * 1_000;
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}
