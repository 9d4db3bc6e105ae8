// Says in words why a chain or a contract refused a call or a transaction.
import { InputError, safeText } from '../bytes.ts';
import { NO_REASON, reasonOf, reverts } from '../words.ts';
import { text } from './abi.ts';

/** The meanings of the numbers of Solidity's `Panic(uint256)`. */
const PANICS: Readonly<Record<number, string>> = {
  0x01: 'an assertion does not hold', 0x11: 'a number is too large or below zero', 0x12: 'a division by zero', 0x21: 'a value is none of its enumeration',
  0x31: 'a list is empty', 0x32: 'an index is beyond the end of a list', 0x41: 'too much memory',
};

/** Selectors of `Error(string)` and `Panic(uint256)`. */
const ERROR = '0x08c379a0';
const PANIC = '0x4e487b71';

/** Why a chain refused a call or a transaction, in words. */
export function refused(error: unknown): string {
  if (error instanceof InputError || !reverts(error)) return reasonOf(error);
  const { data } = error as { data?: unknown };
  const bytes = typeof data === 'string' ? data : '';
  const said = bytes.startsWith(ERROR) ? text(`0x${bytes.slice(10)}`) : undefined;
  if (said !== undefined) return `the contract refuses: ${safeText(said)}`;
  if (bytes.startsWith(PANIC)) return `the contract stops: ${PANICS[Number(`0x${bytes.slice(-8)}`)] ?? 'an error of its program'}`;
  return bytes.length > 2 ? `the contract refuses with the bytes ${bytes.slice(0, 80)}` : `the contract refuses, and ${NO_REASON}`;
}
