// Verifies documents (headers, receipts, accounts) without network access. Their module is small because it contains no EVM.
import { instantiate } from './dist/rootlight_verify.js';
import { instance } from './instance.js';
import { failure, newLife } from './life.js';
import { load as loadFrom, once } from './load.js';
import { INVALID_REQUEST, NETWORKS, checkMembers } from './message.js';

/** Loads the WebAssembly module. The checks call it if needed. */
export const load = once((source) => loadFrom(new URL('./dist/rootlight_verify_bg.wasm', import.meta.url), source));

/**
 * The error for a document that does not prove its claims: `rule` is the broken rule, `what` the part of the document, `passed` the checks
 * that passed before it. By the rules of another network a header has another hash, so that its error names the network.
 */
export class VerificationError extends Error {
  constructor({ rule, what, reason }, passed, network) {
    super(`${rule}: ${what}: ${reason}${what === 'header' ? `, by the rules of ${network}` : ''}`);
    this.name = 'VerificationError';
    this.rule = rule;
    this.what = what;
    this.passed = passed;
  }
}

/** A promise of the module's instance; undefined if there is none or if it has ended. */
let opened;

/** Makes an instance of the module. */
async function begin() {
  const life = newLife();
  life.onEnd(() => {
    opened = undefined;
  });
  return { life, ...(await instance(instantiate, await load(), life)) };
}

/** Runs some work with the module. If the work ends the instance, the next call makes another one. */
async function withModule(work) {
  opened ??= begin().catch((error) => {
    opened = undefined;
    throw error;
  });
  const { life, ...module } = await opened;
  return life.run(() => work(module));
}

/** Returns the function that checks documents about a subject (`header`, `receipt` or `account`), as verify.d.ts declares it. */
const checker = (subject) => async (document, options = {}) => {
  checkMembers(options, subject, ['network']);
  const { network = 'mainnet' } = options;
  const text = JSON.stringify(document) ?? '';
  const answer = await withModule((module) => module.verify(subject, text, String(network)));
  if (answer === undefined) throw failure(INVALID_REQUEST, `network: '${network}' is not known: give ${NETWORKS}`);
  const { checks, facts, notProven, rules, failed } = JSON.parse(answer);
  if (failed) throw new VerificationError(failed, checks, network);
  return { checks, facts, notProven, ...(rules && { rules }) };
};

export const header = checker('header');
export const receipt = checker('receipt');
export const account = checker('account');

/** @deprecated The former names of `receipt` and `account`. */
export { account as verifyAccount, receipt as verifyReceipt };

/**
 * The Keccak-256 hash of bytes.
 * @param {Uint8Array} bytes
 */
export async function keccak256(bytes) {
  return withModule((module) => module.keccak256(bytes));
}
