// What the clients here have in common.

/** One JSON-RPC message over HTTP; the answer. */
export async function post(url, message) {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(message) });
  return response.json();
}

export const bytes = (text) => Buffer.from(text.slice(2), 'hex');
