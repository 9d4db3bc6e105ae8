// What a program does with the light client, the same in Node.js and in a page.

/** JSON with the members of objects in a fixed order: a page gets the questions with theirs sorted. */
const canonical = (value) =>
  JSON.stringify(value, (_, v) =>
    v !== null && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v);

const same = (a, b) => canonical(a) === canonical(b);

/** The members of an answer that the expected one has too; arrays and plain values as they are. */
const known = (answer, expected) =>
  isObject(answer) && isObject(expected) ? Object.fromEntries(Object.keys(expected).map((key) => [key, answer[key]])) : answer;

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Asks every question; returns the number of right answers and the first wrong ones, in words. */
export async function askAll(provider, questions) {
  const wrong = [];
  for (const { method, params, result } of questions) {
    const answer = await provider.request({ method, params }).catch((error) => `error ${error.code}: ${error.message}`);
    if (!same(known(answer, result), result)) wrong.push({ method, params, answer, result });
  }
  return { right: questions.length - wrong.length, wrong: wrong.slice(0, 5) };
}

/** Connects, asks everything, closes. */
export async function askEverything({ createProvider }, options, questions) {
  const provider = await createProvider(options);
  try {
    return await askAll(provider, questions);
  } finally {
    provider.close();
  }
}
