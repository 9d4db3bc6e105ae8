// What a program does with the light client, the same in Node.js and in a page.

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Asks every question; returns the number of right answers and the first wrong ones, in words. */
export async function askAll(provider, questions) {
  const wrong = [];
  for (const { method, params, result } of questions) {
    const answer = await provider.request({ method, params }).catch((error) => `error ${error.code}: ${error.message}`);
    if (!same(answer, result)) wrong.push({ method, params, answer, result });
  }
  return { right: questions.length - wrong.length, wrong: wrong.slice(0, 5) };
}

/** Connects, asks everything, closes. */
export async function askEverything({ connect }, options, questions) {
  const provider = await connect(options);
  try {
    return await askAll(provider, questions);
  } finally {
    provider.close();
  }
}
