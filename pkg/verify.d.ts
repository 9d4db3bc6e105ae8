/** One check that passed. */
export interface Check {
  /** The kind of check. */
  readonly rule: string;
  /** The result of the check, in words. */
  readonly shown: string;
}

/** The facts that a document proves. */
export interface Report {
  /** In the order in which they ran. */
  readonly checks: readonly Check[];
  /** Proven values by name. Numbers are decimal, data is `0x` hexadecimal. */
  readonly facts: Readonly<Record<string, string>>;
  /** Statements of the document, and assumptions, that were not checked, in words. */
  readonly notProven: readonly string[];
  /** Only if the document is or has one header that is not the genesis: the rules of headers, by name. */
  readonly rules?: HeaderRules;
}

/** A rule that needs only the header itself. A report does not list rules that are not active at the header's height. */
export type OwnRule =
  | 'gasLimitMinimum' | 'gasUsed' | 'extraData' | 'edges' | 'bitcoinTime' | 'forkDetectionNumber'
  | 'target' | 'coinbaseCommitment' | 'merkleProof';

/** A rule that compares a header with its parent or earlier ancestors. */
export type ParentRule = 'parentHash' | 'number' | 'difficulty' | 'gasLimitStep' | 'minimumGasPrice' | 'forkDetection';

/** The rules of headers that were checked, and those that were not checked because the document has no parent. */
export interface HeaderRules {
  readonly checked: readonly OwnRule[];
  readonly needParent: readonly ParentRule[];
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

/**
 * A header: a block or uncle as `eth_getBlockByNumber` returns it, or its RLP in hex with all three merged-mining fields;
 * or consecutive ones, oldest first.
 */
export type HeaderDocument = Answer<string | object> | readonly Answer<string | object>[];

/** Whose rules headers are checked by. */
export interface VerifyOptions {
  /** The network of the document's headers. Default: `mainnet`. */
  readonly network?: 'mainnet' | 'testnet' | 'testnet2' | 'devnet' | 'regtest';
}

/** A receipt with the proof that it is in a block. */
export interface ReceiptDocument {
  /** The root in a block header that you trust. Needed without `header`. */
  readonly receiptsRoot?: string;
  /** The header that proves the root. */
  readonly header?: Answer<string | object>;
  /** The result of `rsk_getRawTransactionReceiptByHash` or `eth_getTransactionReceipt`. */
  readonly receipt: Answer<string | object>;
  /** The result of `rsk_getTransactionReceiptNodesByHash`. */
  readonly nodes: Answer<readonly string[]>;
  /** Index of the receipt in its block, if it is to be checked too. */
  readonly index?: number;
}

/** An account, and values of its storage, with their proof. */
export interface AccountDocument {
  /** The root in a block header that you trust. Needed without `header`. */
  readonly stateRoot?: string;
  /** The header that proves the root. */
  readonly header?: Answer<string | object>;
  /** The result of `eth_getProof`. */
  readonly proof: Answer<object>;
}

/** Loads the WebAssembly module ahead of time. */
export function load(module?: URL | Request | Response | BufferSource | WebAssembly.Module): Promise<WebAssembly.Module>;

/**
 * Verifies a header, or consecutive headers: hash, merged-mining proof, and the rules that need no other block; of
 * consecutive ones also that each is the child of the one before. `facts` has `hash`, `number`, `work` (the difficulty that the
 * Bitcoin header meets) and the roots. Headers of signed fallback blocks, which ended at mainnet's block 729,000, are refused.
 * Rejects with a {@link VerificationError} that names the broken rule.
 */
export function header(document: HeaderDocument, options?: VerifyOptions): Promise<Report>;

/**
 * Verifies a receipt under a receipts root, or under a header that has the root. Rejects with a {@link VerificationError} that
 * names the broken rule.
 */
export function receipt(document: ReceiptDocument, options?: VerifyOptions): Promise<Report>;

/**
 * Verifies an account and its storage under a state root, or under a header that has the root. Rejects with a
 * {@link VerificationError} that names the broken rule.
 */
export function account(document: AccountDocument, options?: VerifyOptions): Promise<Report>;

/** @deprecated The former names of `receipt` and `account`. */
export { account as verifyAccount, receipt as verifyReceipt };

/** Keccak-256 of bytes. */
export function keccak256(bytes: Uint8Array): Promise<Uint8Array>;
