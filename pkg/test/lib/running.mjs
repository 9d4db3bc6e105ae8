/**
 * Runs some work between providers of one process. No provider keeps Node.js running by itself, and there is no
 * connection that would, so this does until the work ends or fails.
 */
export async function keepRunning(work) {
  const running = setInterval(() => {}, 1_000);
  try {
    return await work();
  } finally {
    clearInterval(running);
  }
}
