// Uses the light client as a program does, in Node.js and in a page.

/** JSON with sorted members, because a page gets the expected answers with sorted members. */
const canonical = (value) =>
  JSON.stringify(value, (_, v) =>
    v !== null && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v);

const same = (a, b) => canonical(a) === canonical(b);

/** The members of an answer that the expected answer has too; arrays and plain values unchanged. */
const known = (answer, expected) =>
  isObject(answer) && isObject(expected) ? Object.fromEntries(Object.keys(expected).map((key) => [key, answer[key]])) : answer;

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Sends every request; returns the number of right answers and a text about the first wrong ones. */
export async function askAll(provider, questions) {
  const wrong = [];
  for (const { method, params, result } of questions) {
    const answer = await provider.request({ method, params }).catch((error) => `error ${error.code}: ${error.message}`);
    if (!same(known(answer, result), result)) wrong.push({ method, params, answer, result });
  }
  return { right: questions.length - wrong.length, wrong: wrong.slice(0, 5) };
}

/** Connects, sends all requests, closes. */
export async function askEverything({ createProvider }, options, questions) {
  const provider = await createProvider(options);
  try {
    return await askAll(provider, questions);
  } finally {
    provider.close();
  }
}
