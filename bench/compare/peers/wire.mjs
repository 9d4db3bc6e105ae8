// Functions that the clients share.

/** Sends a JSON-RPC message over HTTP; returns the response. */
export async function post(url, message) {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(message) });
  return response.json();
}

export const bytes = (text) => Buffer.from(text.slice(2), 'hex');
