// What a program does with `verify.js`, the same in Node.js and in a page: throws where something is not as it must be.

function must(condition, what) {
  if (!condition) throw new Error(`not as it must be: ${what}`);
}

async function refused(promise, rule) {
  const error = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  must(error?.name === 'VerificationError' && error.rule === rule, `refusal by ${rule}, got ${error}`);
  must(error.message.startsWith(`${rule}: `) && error.message.length > rule.length + 2, 'the reason');
  return error.passed;
}

/** Returns how many documents were checked. */
export async function scenario({ keccak256, verifyAccount, verifyReceipt }, { account, absentAccount, receipt }) {
  const shown = await verifyReceipt(receipt);
  must(shown.facts.gasUsed === '496108', 'the gas of the receipt');
  must(shown.checks.length === 4, 'the number of checks');
  must((await verifyAccount(account)).facts['storage[0x2]'] === '0xd3c21bcecceda1000000', 'a slot');
  must((await verifyAccount(absentAccount)).facts.exists === 'false', 'an absence');

  await refused(verifyReceipt({ ...receipt, index: 4 }), 'receiptInclusion');
  await refused(verifyReceipt({ ...receipt, nodes: receipt.nodes.slice(0, -1) }), 'receiptInclusion');
  await refused(verifyReceipt({}), 'document');
  const passed = await refused(verifyAccount({ ...account, proof: { ...account.proof, balance: '0x1' } }), 'stateValues');
  must(passed.length > 0, 'what was shown before');
  await refused(verifyAccount({ ...account, stateRoot: receipt.receiptsRoot }), 'stateProof');

  const hash = await keccak256(new TextEncoder().encode('cow'));
  must(hash.length === 32 && hash[0] === 0xc8 && hash[31] === 0xf4, 'keccak');
  return 8;
}
