// Encodes a transaction from its JSON, so that its page can show the bytes that the hash covers.
import { fromHex, toHex } from '../bytes.ts';
import { keccak } from './hash.ts';
import { encodeList } from './rlp.ts';

/** The fields that a transaction's hash covers; numbers in hexadecimal. */
export interface SignedFields {
  readonly nonce: string;
  readonly gasPrice: string;
  readonly gas: string;
  readonly to: string | null;
  readonly value: string;
  readonly input: string;
  readonly v: string;
  readonly r: string;
  readonly s: string;
}

/**
 * The bytes of a transaction, `0x` hexadecimal. `undefined` if their hash is not the transaction's: those that pay miners (REMASC), and those of
 * some early programs, encode numbers in other forms.
 */
export function encoded({ nonce, gasPrice, gas, to, value, input, v, r, s }: SignedFields, hash: string): string | undefined {
  const number = (text: string): Uint8Array => {
    const digits = BigInt(text).toString(16);
    return BigInt(text) === 0n ? new Uint8Array() : fromHex(digits.length % 2 === 0 ? digits : `0${digits}`);
  };
  const bytes = encodeList([number(nonce), number(gasPrice), number(gas), fromHex(to ?? '0x'), number(value), fromHex(input), number(v), number(r), number(s)]);
  return toHex(keccak(bytes)) === hash ? toHex(bytes) : undefined;
}
