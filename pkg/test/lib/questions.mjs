// Requests about a recorded chain with the expected answers: blocks, transactions and receipts as the reference node recorded them, and state as read
// by this folder's own trie walker.

const TOKEN = '0x83c5541a6c8d2dbad642f385d8d06ca9b6c731ee';
const TOTAL_SUPPLY = '0x18160ddd';
const TOTAL_SUPPLY_SLOT = '0x2';
const ABSENT = `0x${'99'.repeat(20)}`;

const hex = (number) => `0x${number.toString(16)}`;
const word = (quantity) => `0x${quantity.slice(2).padStart(64, '0')}`;

/** Rootlight writes `v` as a QUANTITY; the reference node pads it to two digits. */
function transaction(recorded) {
  return { ...recorded, v: hex(BigInt(recorded.v)) };
}

function block(recorded) {
  return { ...recorded, transactions: recorded.transactions.map((t) => (typeof t === 'string' ? t : transaction(t))) };
}

/** Rootlight's size of an uncle is that of its header; the reference node includes the body if it has it. */
function uncle({ size, ...recorded }) {
  return { ...recorded, transactions: [] };
}

/** All requests about blocks `from` to `to` of a recorded node. */
export function questionsAbout(node, from, to) {
  const questions = [];
  const put = (method, params, result) => questions.push({ method, params, result });
  const recorded = (method, params, shape = (x) => x) => {
    const { result } = node.ask(method, params);
    if (result !== undefined) put(method, params, result && shape(result));
  };
  for (let n = from; n <= to; n += 1) {
    const { result: full } = node.ask('eth_getBlockByNumber', [hex(n), true]);
    recorded('eth_getBlockByNumber', [hex(n), true], block);
    recorded('eth_getBlockByNumber', [hex(n), false], block);
    recorded('eth_getBlockByHash', [full.hash, true], block);
    recorded('rsk_getRawBlockHeaderByNumber', [hex(n)]);
    put('eth_getBlockTransactionCountByHash', [full.hash], hex(full.transactions.length));
    full.uncles.forEach((_, i) => recorded('eth_getUncleByBlockHashAndIndex', [full.hash, hex(i)], uncle));
    for (const tx of full.transactions) {
      put('eth_getTransactionByHash', [tx.hash], transaction(tx));
      recorded('eth_getTransactionReceipt', [tx.hash]);
      recorded('rsk_getRawTransactionReceiptByHash', [tx.hash]);
      recorded('rsk_getTransactionReceiptNodesByHash', [full.hash, tx.hash]);
    }
    stateQuestions(node, hex(n), [...new Set([TOKEN, ABSENT, full.miner, ...full.transactions.flatMap((t) => [t.from, t.to ?? ABSENT])])], put);
  }
  return questions;
}

function stateQuestions(node, at, addresses, put) {
  for (const address of addresses) {
    const { result: proof } = node.ask('eth_getProof', [address, ['0x0', TOTAL_SUPPLY_SLOT], at]);
    put('eth_getBalance', [address, at], proof.balance);
    put('eth_getTransactionCount', [address, at], proof.nonce);
    put('eth_getCode', [address, at], node.ask('eth_getCode', [address, at]).result);
    for (const { key, value } of proof.storageProof) put('eth_getStorageAt', [address, key, at], word(value));
    if (address !== TOKEN || node.ask('eth_getCode', [address, at]).result === '0x') continue;
    put('eth_call', [{ to: TOKEN, data: TOTAL_SUPPLY }, at], word(proof.storageProof[1].value));
  }
}
