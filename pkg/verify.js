// Verifies given data without network access. The module is small because it contains no EVM.
import { instantiate } from './dist/rootlight_verify.js';
import { instance } from './instance.js';
import { newLife } from './life.js';
import { load as bring, once } from './load.js';

/** Loads the WebAssembly module. The checks call it if needed. */
export const load = once((source) => bring(new URL('./dist/rootlight_verify_bg.wasm', import.meta.url), source));

/** The error for a document that does not hold: `rule` is the broken rule, `passed` the facts proven before it. */
export class VerificationError extends Error {
  constructor({ rule, reason, passed }) {
    super(`${rule}: ${reason}`);
    this.name = 'VerificationError';
    this.rule = rule;
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

function checker(check) {
  return async (document) => {
    const text = JSON.stringify(document);
    const { report, failure } = await checked((module) => JSON.parse(module[check](text)));
    if (failure) throw new VerificationError(failure);
    return report;
  };
}

export const verifyReceipt = checker('verifyReceipt');
export const verifyAccount = checker('verifyAccount');

/** @param {Uint8Array} bytes */
export async function keccak256(bytes) {
  return checked((module) => module.keccak256(bytes));
}
