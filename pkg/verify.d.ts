/** One check that passed, in order. */
export interface Check {
  readonly rule: string;
  readonly shown: string;
}

/** What a document proves. */
export interface Report {
  readonly checks: readonly Check[];
  /** Proven values by name. Numbers are decimal, data is `0x` hexadecimal. */
  readonly facts: Readonly<Record<string, string>>;
  /** What the document states or relies on and that was not checked, in words. */
  readonly notProven: readonly string[];
}

/** A document that does not prove what it says. */
export class VerificationError extends Error {
  /** The rule that is broken. */
  readonly rule: string;
  /** The part of the document that was checked, for instance `accountProof`. */
  readonly what: string;
  /** The checks that passed before it. */
  readonly passed: readonly Check[];
}

/** A value, or the JSON-RPC answer that holds it. */
export type Answer<T> = T | { readonly jsonrpc: string; readonly result: T };

export interface ReceiptDocument {
  /** From a block header that you trust. */
  readonly receiptsRoot: string;
  /** What `rsk_getRawTransactionReceiptByHash` or `eth_getTransactionReceipt` answers. */
  readonly receipt: Answer<string | object>;
  /** What `rsk_getTransactionReceiptNodesByHash` answers. */
  readonly nodes: Answer<readonly string[]>;
  /** The receipt's place in its block, if you want it checked too. */
  readonly index?: number;
}

export interface AccountDocument {
  /** From a block header that you trust. */
  readonly stateRoot: string;
  /** What `eth_getProof` answers. */
  readonly proof: Answer<object>;
}

/** Loads the WebAssembly module ahead of time. */
export function load(module?: URL | Request | Response | BufferSource | WebAssembly.Module): Promise<WebAssembly.Module>;

/** Rejects with a {@link VerificationError} that names the rule. */
export function verifyReceipt(document: ReceiptDocument): Promise<Report>;

/** Rejects with a {@link VerificationError} that names the rule. */
export function verifyAccount(document: AccountDocument): Promise<Report>;

export function keccak256(bytes: Uint8Array): Promise<Uint8Array>;
