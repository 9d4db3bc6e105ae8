// Reads a contract's functions from the JSON that compilers write (the ABI), for forms with a field for each argument.
import { InputError } from '../bytes.ts';

/** A function of a contract, or its constructor. */
export interface ContractFunction {
  readonly name: string;
  readonly inputs: readonly { readonly name: string; readonly type: string }[];
  /** Whether the function changes nothing, so that a call without a transaction is enough. */
  readonly reads: boolean;
}

/** Most characters of an ABI that are read. */
export const LONGEST = 500_000;
/** Most functions that are shown. */
const MOST_FUNCTIONS = 200;

/** The form of a name. */
const NAME = /^[A-Za-z_$][\w$]{0,100}$/;

/** The signature of a function, as `callData` takes it: `transfer(address,uint256)`. */
export const signatureOf = ({ name, inputs }: ContractFunction): string => `${name}(${inputs.map(({ type }) => type).join()})`;

/** The function of an entry of an ABI; `undefined` for events, errors, and names or types in another form. */
function functionOf(entry: unknown): ContractFunction | undefined {
  const { type, name: given, inputs, stateMutability } = (entry ?? {}) as Record<string, unknown>;
  const name = type === 'constructor' ? type : type === 'function' ? given : undefined;
  if (typeof name !== 'string' || !NAME.test(name)) return undefined;
  const list = Array.isArray(inputs) ? (inputs as Record<string, unknown>[]) : [];
  const parameters = list.map((input) => ({ name: String(input?.['name'] ?? '').slice(0, 60), type: String(input?.['type'] ?? '') }));
  if (parameters.some((input) => !/^[a-z0-9[\]()]{1,40}$/.test(input.type))) return undefined;
  return { name, inputs: parameters, reads: stateMutability === 'view' || stateMutability === 'pure' };
}

/** A contract as its ABI describes it. */
export interface Interface {
  /** The constructor, which takes the arguments of a deployment. */
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
  const found = list.map(functionOf).filter((each) => each !== undefined);
  const functions = found.filter(({ name }) => name !== 'constructor').slice(0, MOST_FUNCTIONS);
  if (functions.length === 0) throw new InputError('this ABI names no function');
  return { creation: found.find(({ name }) => name === 'constructor'), functions };
}
