// Uses `verify.js` as a program does, in Node.js and in a page. Throws if a check fails.

import { must } from './checks.mjs';

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
export async function scenario({ keccak256, account: verifyAccount, receipt: verifyReceipt }, { account, absentAccount, receipt }) {
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

/** Resolves a JSON pointer to the object or list that contains the member, and the member's name. */
function place(document, pointer) {
  const names = pointer.split('/').slice(1);
  const last = names.pop();
  return [names.reduce((value, name) => value[name], document), last];
}

/** A document of the table with the changes of a case, in the format that the table describes. */
function changed({ documents }, { document, changes = [] }) {
  const root = { document: structuredClone(documents[document]) };
  for (const change of changes) {
    const [parent, name] = place(root, `/document${change.at}`);
    if ('value' in change) parent[name] = change.value;
    else if ('document' in change) parent[name] = structuredClone(documents[change.document]);
    else if ('wrap' in change) parent[name] = { ...change.wrap, result: parent[name] };
    else if ('list' in change) parent[name] = [parent[name]];
    else if ('members' in change) {
      const [from, inner] = place(root, `/document${change.members}`);
      parent[name] = from[inner];
    } else delete parent[name];
  }
  return root.document;
}

/** Runs the table of cases that the command line's tests use too. Returns the number of its cases. */
export async function tableScenario(verify, table) {
  for (const { name, subject, network = 'regtest', rule, what, reason = '', facts = {}, checked, ...rest } of table.cases) {
    const outcome = await verify[subject](changed(table, rest), { network }).catch((error) => error);
    must(outcome.rule === rule && outcome.what === what, `${name}: ${outcome.message ?? JSON.stringify(outcome)}`);
    must(rule === undefined || outcome.message.includes(reason), `${name}: ${outcome.message}`);
    for (const [fact, value] of Object.entries(facts)) must(outcome.facts[fact] === value, `${name}: ${fact}`);
    must(!checked || String(outcome.rules.checked) === String(checked), `${name}: ${outcome.rules?.checked}`);
  }
  return table.cases.length;
}
