// Contracts for tests, in bytes.

const pad = (hex, bytes = 32) => hex.padStart(2 * bytes, '0');

/** The data that deploys a contract which answers every call with this text, as the ABI encodes it. */
export function answering(text) {
  const bytes = Buffer.from(text, 'utf8');
  const words = Math.ceil(bytes.length / 32);
  const answer = pad('20') + pad(bytes.length.toString(16)) + bytes.toString('hex').padEnd(64 * words, '0');
  // CODECOPY the answer from behind these 13 bytes, and return it.
  const size = pad((answer.length / 2).toString(16), 2);
  const code = `61${size}80600d6000396000f3fe${answer}`;
  const length = pad((code.length / 2).toString(16), 2);
  return `0x61${length}80600d6000396000f3fe${code}`;
}

/** The data whose deployment logs this text, without topics. */
export function logging(text) {
  const bytes = Buffer.from(text, 'utf8');
  const size = pad(bytes.length.toString(16), 2);
  // CODECOPY the text from behind these 13 bytes, LOG0, STOP.
  return `0x61${size}80600d6000396000a000${bytes.toString('hex')}`;
}
