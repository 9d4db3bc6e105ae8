// A contract's functions from the JSON that compilers write (the ABI).
import { InputError } from '../bytes.ts';

export interface ContractFunction {
  readonly name: string;
  readonly inputs: readonly { readonly name: string; readonly type: string }[];
  /** Whether asking is enough: the function changes nothing. */
  readonly reads: boolean;
}

/** Most characters of an ABI that are read. */
export const LONGEST = 500_000;
/** Most functions that are shown. */
const MOST = 200;

const NAME = /^[A-Za-z_$][\w$]{0,100}$/;

/** The function as `callData` takes it. */
export const signatureOf = ({ name, inputs }: ContractFunction): string => `${name}(${inputs.map(({ type }) => type).join()})`;

function one(entry: unknown): ContractFunction | undefined {
  const { type, name: given, inputs, stateMutability } = (entry ?? {}) as Record<string, unknown>;
  const name = type === 'constructor' ? type : type === 'function' ? given : undefined;
  if (typeof name !== 'string' || !NAME.test(name)) return undefined;
  const list = Array.isArray(inputs) ? (inputs as Record<string, unknown>[]) : [];
  const taken = list.map((input) => ({ name: String(input?.['name'] ?? '').slice(0, 60), type: String(input?.['type'] ?? '') }));
  if (taken.some((input) => !/^[a-z0-9[\]()]{1,40}$/.test(input.type))) return undefined;
  return { name, inputs: taken, reads: stateMutability === 'view' || stateMutability === 'pure' };
}

/** A contract as its ABI description: what deploying it takes, and its functions. */
export interface Interface {
  readonly creation: ContractFunction | undefined;
  readonly functions: readonly ContractFunction[];
}

/** The functions of a pasted ABI. */
export const functionsOf = (text: string): readonly ContractFunction[] => interfaceOf(text).functions;

/** Reads a pasted ABI, or a compiler's output that contains one; throws for other text. */
export function interfaceOf(text: string): Interface {
  if (text.length > LONGEST) throw new InputError(`this ABI has ${text.length} characters, at most ${LONGEST} are read`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new InputError('an ABI is JSON: a list in square brackets, as compilers write it');
  }
  const list = Array.isArray(parsed) ? parsed : (parsed as { abi?: unknown } | null)?.abi;
  if (!Array.isArray(list)) throw new InputError('there is no list of functions in this JSON');
  const found = list.map(one).filter((each) => each !== undefined);
  const functions = found.filter(({ name }) => name !== 'constructor').slice(0, MOST);
  if (functions.length === 0) throw new InputError('this ABI names no function');
  return { creation: found.find(({ name }) => name === 'constructor'), functions };
}
