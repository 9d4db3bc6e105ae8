/**
 * Runs some work in which one provider is the upstream of another in the same process. Neither a provider nor a connection
 * keeps Node.js running then, so a timer does until the work ends or fails.
 */
export async function keepRunning(work) {
  const running = setInterval(() => {}, 1_000);
  try {
    return await work();
  } finally {
    clearInterval(running);
  }
}
