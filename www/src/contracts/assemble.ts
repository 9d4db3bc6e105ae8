// A small assembler for the EVM, so that contracts of the page can be read, and changed, as text.
import { concat, fromHex, safeText } from '../bytes.ts';

/** The opcodes of instructions by name, except PUSH, DUP, SWAP and LOG. */
const OPCODES: Readonly<Record<string, number>> = {
  STOP: 0x00, ADD: 0x01, MUL: 0x02, SUB: 0x03, DIV: 0x04, MOD: 0x06, EXP: 0x0a, LT: 0x10, GT: 0x11, EQ: 0x14, ISZERO: 0x15,
  AND: 0x16, OR: 0x17, XOR: 0x18, NOT: 0x19, SHL: 0x1b, SHR: 0x1c, SHA3: 0x20, ADDRESS: 0x30, BALANCE: 0x31, ORIGIN: 0x32,
  CALLER: 0x33, CALLVALUE: 0x34, CALLDATALOAD: 0x35, CALLDATASIZE: 0x36, CALLDATACOPY: 0x37, CODESIZE: 0x38, CODECOPY: 0x39,
  GASPRICE: 0x3a, BLOCKHASH: 0x40, COINBASE: 0x41, TIMESTAMP: 0x42, NUMBER: 0x43, GASLIMIT: 0x45, CHAINID: 0x46,
  SELFBALANCE: 0x47, POP: 0x50, MLOAD: 0x51, MSTORE: 0x52, MSTORE8: 0x53, SLOAD: 0x54, SSTORE: 0x55, JUMP: 0x56, JUMPI: 0x57,
  PC: 0x58, MSIZE: 0x59, GAS: 0x5a, JUMPDEST: 0x5b, CREATE: 0xf0, CALL: 0xf1, RETURN: 0xf3, DELEGATECALL: 0xf4, STATICCALL: 0xfa,
  REVERT: 0xfd, INVALID: 0xfe,
};
/** Instructions with a number in their name, such as DUP1: the word before the number, the opcode with the least number, the least and the greatest number. */
const FAMILIES: readonly (readonly [name: string, base: number, least: number, greatest: number])[] = [['DUP', 0x80, 1, 16], ['SWAP', 0x90, 1, 16], ['LOG', 0xa0, 0, 4]];

/** An error with the line that it is about. */
class AssemblyError extends Error {
  constructor(line: number, text: string) {
    super(`line ${line}: ${text}`);
  }
}

/** A word of the code as an error repeats it. */
const shown = (word: string): string => safeText(word.slice(0, 40));

/** Assembled bytes, or a PUSH of the position of a label, which is known at the end. */
type Piece = Uint8Array | { readonly label: string; readonly line: number };

/** The opcode of an instruction. */
function opcode(name: string, line: number): number {
  const known = OPCODES[name];
  if (known !== undefined) return known;
  for (const [family, base, least, greatest] of FAMILIES) {
    const number = name.startsWith(family) ? Number(name.slice(family.length) || NaN) : NaN;
    if (number >= least && number <= greatest) return base + number - least;
  }
  throw new AssemblyError(line, `${shown(name)} is no instruction`);
}

/** PUSH with the shortest form of a number, or with the position of a label. */
function push(value: string, line: number): Piece {
  if (value.startsWith('@')) return { label: value.slice(1), line };
  try {
    const text = BigInt(value).toString(16);
    const bytes = fromHex(text.length % 2 === 0 ? text : `0${text}`);
    if (bytes.length > 32) throw new Error('too long');
    // PUSH1 is 0x60.
    return concat(Uint8Array.of(0x5f + bytes.length), bytes);
  } catch {
    throw new AssemblyError(line, `PUSH needs a number of up to 32 bytes or @label, not ${shown(value)}`);
  }
}

/**
 * Assembles instructions, separated by spaces or lines. `PUSH` takes a number, or `@label` for a position to jump to; `label:`
 * names such a position (JUMPDEST); text after `;` is a comment.
 */
export function assemble(source: string): Uint8Array {
  const pieces: Piece[] = [];
  const positions = new Map<string, number>();
  let size = 0;
  const add = (piece: Piece) => {
    pieces.push(piece);
    // A label is pushed by PUSH2, of 3 bytes.
    size += piece instanceof Uint8Array ? piece.length : 3;
  };
  source.split('\n').forEach((text, index) => {
    const line = index + 1;
    const words = text.replace(/;.*/, '').split(/\s+/).filter(Boolean);
    for (let at = 0; at < words.length; at += 1) {
      const word = words[at] ?? '';
      if (word.endsWith(':')) {
        positions.set(word.slice(0, -1), size);
        add(Uint8Array.of(0x5b));
      } else if (word.toUpperCase() === 'PUSH') {
        at += 1;
        add(push(words[at] ?? '', line));
      } else {
        add(Uint8Array.of(opcode(word.toUpperCase(), line)));
      }
    }
  });
  return concat(...pieces.map((piece) => {
    if (piece instanceof Uint8Array) return piece;
    const position = positions.get(piece.label);
    if (position === undefined) throw new AssemblyError(piece.line, `there is no label ${shown(piece.label)}`);
    return push2(position);
  }));
}

/** A number as PUSH2, so that its length does not depend on its value. */
const push2 = (value: number) => Uint8Array.of(0x61, value >> 8, value & 0xff);

/** The bytes that a transaction sends to deploy a contract: they run `first`, then return the contract's code. */
export function deployment(code: Uint8Array, first = ''): Uint8Array {
  const before = assemble(first);
  const size = push2(code.length);
  const [copy, give] = [assemble('PUSH 0 CODECOPY'), assemble('PUSH 0 RETURN')];
  // The code follows `first`, three PUSH2 and the 6 bytes of `copy` and `give`.
  const start = before.length + 3 * size.length + 6;
  return concat(before, size, push2(start), copy, size, give, code);
}
