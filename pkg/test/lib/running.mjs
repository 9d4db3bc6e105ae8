/**
 * Does some work between providers of one process. None of them keeps Node.js running by itself, and there is no
 * connection that would; work that fails does not either.
 */
export async function keepRunning(work) {
  const running = setInterval(() => {}, 1_000);
  try {
    return await work();
  } finally {
    clearInterval(running);
  }
}
