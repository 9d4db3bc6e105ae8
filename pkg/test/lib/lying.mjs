// An upstream that lies.

/** Changes a digit of every node of an account proof. */
const harmed = (key, value) =>
  key === 'accountProof' ? value.map((node) => node.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))) : value;

/** A transport whose proofs of accounts are wrong. */
export const lying = (honest) => async (body) => {
  const text = new TextDecoder().decode(await honest(body));
  return new TextEncoder().encode(JSON.stringify(JSON.parse(text, harmed)));
};
