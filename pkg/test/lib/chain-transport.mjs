// A transport from a light client to a chain in the same process.

/**
 * @param {{request: Function}} chain
 * @param {string[]} [without] methods that the upstream does not have
 */
export function transportTo(chain, without = []) {
  const one = async ({ id, method, params }) => {
    const unknown = { jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } };
    if (without.includes(method)) return unknown;
    return chain.request({ method, params }).then(
      (result) => ({ jsonrpc: '2.0', id, result }),
      ({ code, message }) => ({ jsonrpc: '2.0', id, error: { code, message } }),
    );
  };
  return async (body) => {
    const message = JSON.parse(body);
    const answer = Array.isArray(message) ? await Promise.all(message.map(one)) : await one(message);
    return new TextEncoder().encode(JSON.stringify(answer));
  };
}
