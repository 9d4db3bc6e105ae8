// The page of a transaction: its position in the block, what it did, and the proof of its receipt.
import type { Block, Session } from '../chain/session.ts';
import { equal, fromHex, grouped, InputError, rbtc, safeText, short } from '../bytes.ts';
import { el } from '../dom.ts';
import { keccak } from '../proof/hash.ts';
import { encoded, type SignedFields } from '../proof/transaction.ts';
import { follow, receiptKey } from '../proof/trie.ts';
import { valueOf } from '../views/account.ts';
import { claimOf, clipped, comparison } from '../views/answer.ts';
import { ladderView, type Step } from '../views/ladder.ts';
import { decimalsIn, type Log, meaning } from '../views/logs.ts';
import { LINKED, nodeViews, trieTitle } from '../views/trail.ts';
import { blockOf, blockPage } from './block.ts';
import { bytesView, factsView, headingView, link, miningProof, descriptionView, restsView, toolsView, workSteps } from './common.ts';

/** A transaction as `eth_getTransactionByHash` returns it. */
interface Transaction extends SignedFields {
  readonly from: string;
}

/** A receipt as `eth_getTransactionReceipt` returns it. */
interface Receipt {
  readonly transactionHash: string;
  readonly transactionIndex: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly contractAddress: string | null;
  readonly logs: readonly Log[];
}

/** Most logs that are listed. */
const LISTED = 100;

/** The result of a transaction in words. */
const resultOf = ({ status, logs }: Receipt): string => `${status === '0x1' ? 'succeeded' : 'reverted: nothing changed except the fee'} · ${grouped(logs.length)} log${logs.length === 1 ? '' : 's'}`;

/** A node's answer about a receipt in words. The answer may be any JSON. `undefined` if there is none. */
function claimWords(claim: unknown, words: (receipt: Receipt) => string): string | undefined {
  if (claim === undefined || claim === null) return undefined;
  try {
    return safeText(words(claim as Receipt));
  } catch {
    return 'nothing that makes sense';
  }
}

/** The step from the block to the transaction and to its receipt: the header has one hash for all of each. */
function namedStep({ transactions, transactionsRoot, receiptsRoot }: Block, transaction: Transaction, hash: string): Step {
  const count = transactions.length;
  return { title: 'The block names this transaction and its receipt', holds: transactions.includes(hash), open: () => {
    const bytes = encoded(transaction, hash);
    return [
      descriptionView(`The transactions root in the header of the block: one hash for all transactions. The light client in this tab hashed ${count === 1 ? 'its only transaction' : `all ${grouped(count)} of them`} again, and came to this root:`), bytesView(transactionsRoot),
      descriptionView(bytes ? 'This one has these bytes. Their Keccak-256, computed here, is the hash that names it:' : 'The hash that names this one:'), ...(bytes ? [bytesView(clipped(bytes))] : []), bytesView(hash),
      descriptionView('The receipts root in the same header: one hash for all receipts. The next steps lead from it to the receipt of this transaction.'), bytesView(receiptsRoot)];
  } };
}

/** Makes the page. */
export async function transactionPage(session: Session, hash = ''): Promise<HTMLElement> {
  if (!/^0x[0-9a-f]{64}$/.test(hash)) throw new InputError(`a transaction is 0x and 64 hexadecimal digits, not ${hash.length} characters; 40 digits are an address, a plain number is a block`);
  const receipt = (await session.request('eth_getTransactionReceipt', hash)) as Receipt | null;
  // A block's hash has the same form.
  if (!receipt) return blockPage(session, hash).catch(() => { throw new Error(`no proven block has a transaction or is a block with the hash ${short(hash)}: not known`); });
  const block = await blockOf(session, String(Number(receipt.blockNumber)));
  const [transaction, verification, proof, nodes, raw, claim] = await Promise.all([
    session.request('eth_getTransactionByHash', hash) as Promise<Transaction>, session.verification(block.number), miningProof(session, block),
    session.request('rsk_getTransactionReceiptNodesByHash', block.hash, hash) as Promise<string[]>,
    session.request('rsk_getRawTransactionReceiptByHash', hash) as Promise<string>, claimOf(session, 'eth_getTransactionReceipt', hash),
  ]);
  const path = follow(block.receiptsRoot, receiptKey(Number(receipt.transactionIndex)), nodes.map(fromHex));
  const bytes = fromHex(raw);
  // A trie node has the hash of a long value, followed by its length, in place of the value.
  const holds = equal(valueOf(path), bytes) || equal(valueOf(path).subarray(0, 32), keccak(bytes));
  const decimals = await decimalsIn(session, receipt.logs.slice(0, LISTED));
  const inWords = (log: Log) => meaning(log, decimals);
  // Logs are compared by all their bytes: words leave some out, in which a node may lie.
  const exactly = ({ address, topics, data }: Log) => [address, ...topics, data].join(' ').toLowerCase();
  const compared = await comparison(session, { block, lines: [
    { name: 'Result', claimed: claimWords(claim, resultOf), proven: resultOf(receipt) },
    { name: 'Gas', claimed: claimWords(claim, ({ gasUsed }) => String(Number(gasUsed))), proven: String(Number(receipt.gasUsed)) },
    { name: 'Logs', claimed: claimWords(claim, ({ logs }) => logs.map(exactly).join()), proven: receipt.logs.map(exactly).join() },
  ] });
  const number = grouped(Number(block.number));
  return el('article', {},
    headingView('Transaction', hash, verification),
    factsView(
      ['From', link('address', transaction.from)],
      ['To', transaction.to ? link('address', transaction.to) : receipt.contractAddress ? el('span', {}, 'a new contract, ', link('address', receipt.contractAddress)) : 'nobody'],
      ['Amount', rbtc(BigInt(transaction.value))],
      ['Fee', rbtc(BigInt(transaction.gasPrice) * BigInt(receipt.gasUsed))],
      ['Result', resultOf(receipt)],
      ['At block', link('block', String(Number(block.number))), `, transaction ${grouped(Number(receipt.transactionIndex) + 1)} of ${grouped(block.transactions.length)}`]),
    restsView(block, verification),
    ladderView([
      ...workSteps(session, block, proof),
      namedStep(block, transaction, hash),
      { title: trieTitle(path.nodes.length), holds: path.linked, open: () => [descriptionView(LINKED), nodeViews(path)] },
      { title: 'This receipt', holds, open: () => [descriptionView(`${grouped(bytes.length)} bytes at the end of the path, in block ${number}.`), bytesView(raw.slice(0, 4_000))] },
    ]),
    receipt.logs.length > 0 && el('section', { class: 'card', 'aria-label': 'Logs' }, el('h2', {}, 'Logs'),
      el('ol', { class: 'hashes' }, ...receipt.logs.slice(0, LISTED).map((log) => el('li', {}, `${safeText(inWords(log))} · `, link('address', log.address))))),
    toolsView(session, compared, claim, ['eth_getTransactionReceipt', hash], { subject: 'receipt', document: { receipt, nodes, header: block }, name: `receipt-${hash.slice(2, 14)}.json` }));
}
