// Requests of the page to its front end. The token is stored in a variable of this module only.

let token = '';
let onRefused = () => {};

/** Sets the token, and the function that is called with the error when the token is refused. */
export function signIn(text, whenRefused) {
  token = text;
  onRefused = whenRefused;
}

/** Forgets the token. */
export function signOut() {
  token = '';
}

/** Sends a request to a path below `api/` and returns the answer. Throws an error whose text can be shown to people. */
export async function ask(path, body = {}) {
  let response;
  try {
    response = await fetch(`api/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      // Longer than the 30 seconds that a command on keys may take.
      signal: AbortSignal.timeout(35_000),
    });
  } catch {
    throw new Error('The front end does not answer.');
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const error = new Error(sentence(answer.error ?? `status ${response.status}`));
  if (response.status === 401) onRefused(error);
  throw error;
}

/** A text as a sentence: with a capital letter and a full stop. */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
