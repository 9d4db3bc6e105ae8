// The part of the contract ABI that the page's forms need: selectors, words of 32 bytes, and texts in answers.
import { ascii, concat, digits, fromHex, InputError, toAddress, toBig, toHex } from '../bytes.ts';
import { keccak } from '../proof/hash.ts';

/** Bytes of a word. */
const WORD = 32;

/** A number as a word; a negative one in two's complement. */
export const word = (value: bigint): Uint8Array => fromHex(BigInt.asUintN(256, value).toString(16).padStart(2 * WORD, '0'));

/** The first four bytes of call data, which name the function. */
export const selector = (signature: string): Uint8Array => keccak(ascii(signature)).subarray(0, 4);

/** Keccak-256 of `Transfer(address,address,uint256)`: the first topic of a token's transfers. */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** The number in a text; throws if its type cannot represent it, because the chain would use only the last bits of a larger one. */
function whole(type: string, text: string): bigint {
  if (!/^(-?\d{1,80}|0x[0-9a-f]{1,64})$/i.test(text)) throw new InputError(`${text.slice(0, 40) || 'nothing'} is no whole number`);
  const [value, bits] = [BigInt(text), Math.min(Number(/\d+$/.exec(type) ?? 256), 256)];
  if (BigInt[type.startsWith('u') ? 'asUintN' : 'asIntN'](bits, value) !== value) throw new InputError(`${text.slice(0, 40)} does not fit ${type}`);
  return value;
}

/** An argument as a word. */
function argument(type: string, text: string): Uint8Array {
  if (type === 'address') return word(BigInt(toAddress(text)));
  if (type === 'bool') return word(text.trim() === 'true' || text.trim() === '1' ? 1n : 0n);
  if (/^u?int\d*$/.test(type)) return word(whole(type, text.trim()));
  if (type === 'bytes32') return word(toBig(fromHex(text.trim())));
  throw new InputError(`arguments of type ${type} are not supported here: write the whole call data in hexadecimal`);
}

/** The call data of a function such as `transfer(address,uint256)` with its arguments as texts, or `0x` hexadecimal as it is. */
export function callData(signature: string, values: readonly string[]): string {
  const text = signature.replaceAll(/\s+/g, '');
  if (text === '') return '0x';
  if (text.startsWith('0x')) return toHex(fromHex(text));
  const parts = /^[A-Za-z_$][\w$]*\(([^()]*)\)$/.exec(text);
  if (!parts) throw new InputError('write a function such as balanceOf(address), or call data in hexadecimal');
  const types = parts[1] ? parts[1].split(',') : [];
  if (types.length !== values.length) throw new InputError(`the function takes ${types.length} arguments, ${values.length} given`);
  return toHex(concat(selector(text), ...types.map((type, at) => argument(type, values[at] ?? ''))));
}

/** Most bytes of a contract's text that are shown. Contracts may answer megabytes. */
const MOST_TEXT_BYTES = 200;

/** The text in a contract's answer, also in the form of old tokens, 32 bytes padded with zeros. `undefined` if the answer is no text. */
export function text(answer: string): string | undefined {
  const bytes = fromHex(answer);
  const read = (part: Uint8Array) => new TextDecoder().decode(part.subarray(0, MOST_TEXT_BYTES)).replaceAll('\0', '');
  if (bytes.length === WORD) return read(bytes);
  if (bytes.length < 2 * WORD) return undefined;
  // The position of the text, then its length, then its bytes.
  const [start, length] = [Number(toBig(bytes.subarray(0, WORD))), Number(toBig(bytes.subarray(WORD, 2 * WORD)))];
  return start === WORD && length <= bytes.length - 2 * WORD ? read(bytes.subarray(2 * WORD, 2 * WORD + length)) : undefined;
}

/** The number in a contract's answer; `undefined` if the answer is not one word. */
export const number = (answer: string): bigint | undefined => (/^0x[0-9a-f]{64}$/i.test(answer) ? BigInt(answer) : undefined);

/** The address in a word, as in topics of logs. */
export const addressOf = (topic: string): string => `0x${topic.slice(-40)}`;

/** The words of an answer, as hexadecimal digits. */
export const words = (answer: string): string[] => digits(fromHex(answer)).match(/.{1,64}/g) ?? [];
