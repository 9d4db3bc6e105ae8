// The page's own contracts, a token and a counter, as assembly that visitors can read and change (assemble.ts).
import { digits, toHex } from '../bytes.ts';
import { TRANSFER } from './abi.ts';
import { assemble, deployment } from './assemble.ts';

/** Instructions that return a text, in the form of the ABI. */
function textAnswer(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const parts = digits(bytes).match(/.{1,64}/g) ?? [];
  const stores = parts.map((part, at) => `PUSH 0x${part.padEnd(64, '0')} PUSH ${64 + 32 * at} MSTORE`);
  return [`PUSH 32 PUSH 0 MSTORE PUSH ${bytes.length} PUSH 32 MSTORE`, ...stores, `PUSH ${64 + 32 * parts.length} PUSH 0 RETURN`].join('\n  ');
}

/** Instructions that return the number on top of the stack. */
const NUMBER_ANSWER = 'PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN';

/** Tokens that exist, with 18 decimals. */
export const SUPPLY = 1_000_000n * 10n ** 18n;

/** A token (ERC-20 without allowances). The balance of a holder is in the storage cell with the number of its address. */
export const tokenSource = (name: string, symbol: string): string => `; A small token: who may move how much?
PUSH 0 CALLDATALOAD PUSH 0xe0 SHR          ; the first four bytes say which function
DUP1 PUSH 0x06fdde03 EQ PUSH @name JUMPI
DUP1 PUSH 0x95d89b41 EQ PUSH @symbol JUMPI
DUP1 PUSH 0x313ce567 EQ PUSH @decimals JUMPI
DUP1 PUSH 0x18160ddd EQ PUSH @totalSupply JUMPI
DUP1 PUSH 0x70a08231 EQ PUSH @balanceOf JUMPI
DUP1 PUSH 0xa9059cbb EQ PUSH @transfer JUMPI
fail: PUSH 0 PUSH 0 REVERT

name:
  ${textAnswer(name)}
symbol:
  ${textAnswer(symbol)}
decimals: PUSH 18 ${NUMBER_ANSWER}
totalSupply: PUSH ${SUPPLY} ${NUMBER_ANSWER}
balanceOf: PUSH 4 CALLDATALOAD SLOAD ${NUMBER_ANSWER}

transfer:
  PUSH 36 CALLDATALOAD CALLER SLOAD        ; the amount, and what the sender has
  DUP2 DUP2 LT PUSH @fail JUMPI            ; not more than that
  DUP2 SWAP1 SUB CALLER SSTORE             ; take it
  PUSH 4 CALLDATALOAD DUP1 SLOAD DUP3 ADD DUP2 SSTORE   ; give it
  SWAP1 PUSH 0 MSTORE CALLER PUSH ${TRANSFER}
  PUSH 32 PUSH 0 LOG3                      ; the log Transfer(from, to, amount)
  PUSH 1 ${NUMBER_ANSWER}
`;

/** A contract that counts. */
export const COUNTER = `; Counts: increment() adds one and logs it, number() tells how far it is.
PUSH 0 CALLDATALOAD PUSH 0xe0 SHR
DUP1 PUSH 0xd09de08a EQ PUSH @increment JUMPI
DUP1 PUSH 0x8381f58a EQ PUSH @number JUMPI
PUSH 0 PUSH 0 REVERT

increment:
  PUSH 0 SLOAD PUSH 1 ADD
  DUP1 PUSH 0 SSTORE
  PUSH 0 MSTORE
  PUSH 0xcafe PUSH 32 PUSH 0 LOG1
  STOP

number: PUSH 0 SLOAD ${NUMBER_ANSWER}
`;

/** A function as an ABI describes it; `view` if it changes nothing. */
const entry = (name: string, inputs: readonly (readonly [type: string, name: string])[], view: boolean) => (
  { type: 'function', name, stateMutability: view ? 'view' : 'nonpayable', inputs: inputs.map(([type, of]) => ({ type, name: of })) });

/** The ABIs of both contracts, as a compiler would write them. */
export const COUNTER_ABI = JSON.stringify([entry('increment', [], false), entry('number', [], true)]);
export const TOKEN_ABI = JSON.stringify([
  entry('balanceOf', [['address', 'holder']], true), entry('totalSupply', [], true), entry('name', [], true), entry('symbol', [], true),
  entry('transfer', [['address', 'to'], ['uint256', 'amount']], false),
]);

/** The data of the transaction that deploys the token. Its sender gets the whole supply. */
export function tokenDeployment(name: string, symbol: string): string {
  const minted = `PUSH ${SUPPLY} CALLER SSTORE PUSH ${SUPPLY} PUSH 0 MSTORE CALLER PUSH 0 PUSH ${TRANSFER} PUSH 32 PUSH 0 LOG3`;
  return toHex(deployment(assemble(tokenSource(name, symbol)), minted));
}
