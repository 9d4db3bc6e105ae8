// Checks of data at hand, without network and without the EVM: a small module of its own.
import init, * as module from './dist/rootlight_verify.js';
import { load as bring, once } from './load.js';

/** Loads the WebAssembly module; the checks need it. */
export const load = once((source) => bring(init, new URL('./dist/rootlight_verify_bg.wasm', import.meta.url), source));

/** A document that does not prove what it says: `rule` is the one that is broken, `passed` what was shown before. */
export class VerificationError extends Error {
  constructor({ rule, reason, passed }) {
    super(`${rule}: ${reason}`);
    this.name = 'VerificationError';
    this.rule = rule;
    this.passed = passed;
  }
}

function checker(check) {
  return async (document) => {
    await load();
    const { report, failure } = JSON.parse(module[check](JSON.stringify(document)));
    if (failure) throw new VerificationError(failure);
    return report;
  };
}

export const verifyReceipt = checker('verifyReceipt');
export const verifyAccount = checker('verifyAccount');

/** @param {Uint8Array} bytes */
export async function keccak256(bytes) {
  await load();
  return module.keccak256(bytes);
}
