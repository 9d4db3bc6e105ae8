// Verifies given data without network access. The module is small because it contains no EVM.
import { instantiate } from './dist/rootlight_verify.js';
import { instance } from './instance.js';
import { failure, newLife } from './life.js';
import { load as bring, once } from './load.js';
import { INVALID_REQUEST, NETWORKS, checkMembers } from './message.js';

/** Loads the WebAssembly module. The checks call it if needed. */
export const load = once((source) => bring(new URL('./dist/rootlight_verify_bg.wasm', import.meta.url), source));

/**
 * The error for a document that does not prove its claims: `rule` is the broken rule, `what` the part of the document, `passed` the checks
 * before it. A header has another hash by the rules of another network, so that its error names the one that was meant.
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

/** A promise of the module's instance; undefined if there is none or it has ended. */
let checks;

async function begin() {
  const life = newLife();
  life.onEnd(() => {
    checks = undefined;
  });
  return { life, ...(await instance(instantiate, await load(), life)) };
}

/** Runs some work with the module. If the work ends the instance, the next call makes another one. */
async function checked(work) {
  checks ??= begin().catch((error) => {
    checks = undefined;
    throw error;
  });
  const { life, ...module } = await checks;
  return life.run(() => work(module));
}

/** The check of documents about a subject, by the rules of a network. */
const checker = (subject) => async (document, options = {}) => {
  checkMembers(options, subject, ['network']);
  const { network = 'mainnet' } = options;
  const text = JSON.stringify(document) ?? '';
  const answer = await checked((module) => module.verify(subject, text, String(network)));
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

/** @param {Uint8Array} bytes */
export async function keccak256(bytes) {
  return checked((module) => module.keccak256(bytes));
}
