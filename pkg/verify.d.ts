/** One check that passed, in order. */
export interface Check {
  readonly rule: string;
  readonly shown: string;
}

/** The facts that a document proves. */
export interface Report {
  readonly checks: readonly Check[];
  /** Proven values by name. Numbers are decimal, data is `0x` hexadecimal. */
  readonly facts: Readonly<Record<string, string>>;
  /** Statements of the document, and assumptions, that were not checked, in words. */
  readonly notProven: readonly string[];
}

/** The error for a document that does not prove its claims. */
export class VerificationError extends Error {
  /** The rule that is broken. */
  readonly rule: string;
  /** The part of the document that was checked, for instance `accountProof`. */
  readonly what: string;
  /** The checks that passed before it. */
  readonly passed: readonly Check[];
}

/** A value, or the JSON-RPC response that contains it. */
export type Answer<T> = T | { readonly jsonrpc: string; readonly result: T };

export interface ReceiptDocument {
  /** The root in a block header that you trust. */
  readonly receiptsRoot: string;
  /** The result of `rsk_getRawTransactionReceiptByHash` or `eth_getTransactionReceipt`. */
  readonly receipt: Answer<string | object>;
  /** The result of `rsk_getTransactionReceiptNodesByHash`. */
  readonly nodes: Answer<readonly string[]>;
  /** Index of the receipt in its block, if it is to be checked too. */
  readonly index?: number;
}

export interface AccountDocument {
  /** The root in a block header that you trust. */
  readonly stateRoot: string;
  /** The result of `eth_getProof`. */
  readonly proof: Answer<object>;
}

/** Loads the WebAssembly module ahead of time. */
export function load(module?: URL | Request | Response | BufferSource | WebAssembly.Module): Promise<WebAssembly.Module>;

/** Verifies a receipt under a receipts root. Rejects with a {@link VerificationError} that names the broken rule. */
export function verifyReceipt(document: ReceiptDocument): Promise<Report>;

/** Verifies an account and its storage under a state root. Rejects with a {@link VerificationError} that names the broken rule. */
export function verifyAccount(document: AccountDocument): Promise<Report>;

/** Keccak-256 of bytes. */
export function keccak256(bytes: Uint8Array): Promise<Uint8Array>;
