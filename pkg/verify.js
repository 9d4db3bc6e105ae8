// Checks of data at hand, without network and without the EVM: a small module of its own.
import { instantiate } from './dist/rootlight_verify.js';
import { instance } from './instance.js';
import { newLife } from './life.js';
import { load as bring, once } from './load.js';

/** Loads the WebAssembly module; the checks need it. */
export const load = once((source) => bring(new URL('./dist/rootlight_verify_bg.wasm', import.meta.url), source));

/** A document that does not prove what it says: `rule` is the one that is broken, `passed` what was shown before. */
export class VerificationError extends Error {
  constructor({ rule, reason, passed }) {
    super(`${rule}: ${reason}`);
    this.name = 'VerificationError';
    this.rule = rule;
    this.passed = passed;
  }
}

/** The instance that checks, until something ends it. */
let checks;

async function begin() {
  const life = newLife();
  life.onEnd(() => {
    checks = undefined;
  });
  return { life, ...(await instance(instantiate, await load(), life)) };
}

/** Does some work with the module; where that ends the module, the next work gets another one. */
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
