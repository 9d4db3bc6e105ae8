// Requests to the front end. The token is in a variable of this module only.

let token = '';
let refused = () => {};

/** Sets the token, and what happens when it is refused. */
export function signIn(text, whenRefused) {
  token = text;
  refused = whenRefused;
}

export function signOut() {
  token = '';
}

/** Asks; the error of an answer that is none has a text for people. */
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
      signal: AbortSignal.timeout(35_000),
    });
  } catch {
    throw new Error('The front end does not answer.');
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const error = new Error(sentence(answer.error ?? `status ${response.status}`));
  if (response.status === 401) refused(error);
  throw error;
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
