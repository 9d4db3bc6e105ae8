// The explorer's logs: what contracts reported, each proven by its receipt.
import type { Session } from '../chain/session.ts';
import { equal, fromHex, grouped, quantity, short, toAddress, units } from '../bytes.ts';
import { addressOf, number, TRANSFER } from '../contracts/abi.ts';
import { action, el, field, fill, form } from '../dom.ts';
import { keccak } from '../proof/hash.ts';
import { follow, receiptKey } from '../proof/trie.ts';
import { valueOf } from './account.ts';
import { heard, refusalView, said, shower, standing, verdictBadge } from './answer.ts';
import { trailView } from './trail.ts';

export interface Log {
  readonly address: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly transactionIndex: string;
  readonly logIndex: string;
  readonly data: string;
  readonly topics: readonly string[];
}

/** Most blocks that one question covers, and most logs that are shown. */
const BLOCKS = 2000;
const SHOWN = 50;

/** What a log says, as far as that can be told. */
export function meaning(log: Log): string {
  const [event, from, to] = log.topics;
  if (event === TRANSFER && from && to) {
    const amount = number(log.data);
    const source = BigInt(from) === 0n ? 'new tokens' : `from ${short(addressOf(from), 3, 3)}`;
    return `Transfer of ${amount === undefined ? '?' : units(amount)}, ${source}, to ${short(addressOf(to), 3, 3)}`;
  }
  return event ? `event ${short(event, 4, 4)}, data ${short(log.data, 8, 8)}` : `data ${short(log.data, 8, 8)}`;
}

/** The path from the receipts root to the receipt that contains a log. */
async function receiptTrail(session: Session, log: Log): Promise<HTMLElement> {
  const [block, nodes, raw] = await Promise.all([
    session.block(log.blockNumber),
    session.request('rsk_getTransactionReceiptNodesByHash', log.blockHash, log.transactionHash) as Promise<string[]>,
    session.request('rsk_getRawTransactionReceiptByHash', log.transactionHash) as Promise<string>,
  ]);
  if (!block) throw new Error('the block of this log is not known');
  const path = follow(block.receiptsRoot, receiptKey(Number(log.transactionIndex)), nodes.map(fromHex));
  const value = valueOf(path);
  const receipt = fromHex(raw);
  // Long values are in the node by their hash, followed by their length.
  const holds = equal(value, receipt) || equal(value.subarray(0, 32), keccak(receipt));
  const made = trailView({ title: 'Proof of the receipt', block, root: 'receiptsRoot', path, holds, value: `the receipt of transaction ${short(log.transactionHash, 6, 6)}, ${grouped(receipt.length)} bytes, which contains this log` });
  made.open = true;
  return made;
}

/** One log; `claimed` is what the node says of it, `undefined` if the node answers nothing at all. */
function row(session: Session, log: Log, claimed: string | undefined): HTMLElement {
  const proof = el('div');
  const proven = meaning(log);
  const show = action('Show its proof', () => receiptTrail(session, log).then((made) => fill(proof, made), (error) => fill(proof, refusalView(error))));
  return el('li', {},
    el('p', {}, el('span', { class: 'badge good' }, '✓'), ' ', el('strong', {}, proven)),
    el('p', { class: 'small' }, `Block ${grouped(Number(log.blockNumber))} · contract ${short(log.address, 4, 4)}`),
    claimed !== undefined && claimed !== proven && el('p', { class: 'note bad' }, verdictBadge('lie'), ` The node says: ${claimed}`),
    show, proof);
}

export function logsForm(session: Session, address = session.source.token): HTMLElement {
  const contract = el('input', { value: address ?? '', autocomplete: 'off', spellcheck: 'false' });
  const count = el('input', { value: '100', inputmode: 'numeric', autocomplete: 'off' });
  const result = el('div');
  const show = shower(result, session);
  const ask = () => show(async () => {
    const blocks = Math.min(BLOCKS, Math.max(1, Math.floor(Number(count.value)) || 1));
    const filter = {
      fromBlock: quantity(Math.max(0, session.head - blocks + 1)), toBlock: quantity(session.head),
      ...(contract.value.trim() ? { address: toAddress(contract.value) } : {}),
    };
    const [{ result: found, level }, claim, verification] = await Promise.all([
      session.answer('eth_getLogs', filter), said(session, 'eth_getLogs', filter), session.verification(quantity(session.head)),
    ]);
    const logs = found as Log[];
    const answers = Array.isArray(claim);
    const claims = (answers ? claim : []) as Partial<Log>[];
    const same = (log: Log) => claims.find((other) => other?.transactionHash === log.transactionHash && other.logIndex === log.logIndex);
    const newest = logs.slice(-SHOWN).reverse();
    const told = (log: Log): string | undefined => {
      const other = same(log);
      return other ? heard(other.data, () => meaning(other as Log)) ?? 'a log without data' : answers ? 'there is no such log' : undefined;
    };
    const rows = newest.map((log) => {
      const other = told(log);
      if (other !== undefined && other !== meaning(log)) session.caught(`log ${log.transactionHash} ${log.logIndex} ${other}`);
      return row(session, log, other);
    });
    const made = claims.length - logs.length;
    if (made > 0) session.caught(`logs ${filter.fromBlock} ${filter.toBlock} ${made}`);
    return el('div', {}, standing(level, verification),
      el('p', {}, logs.length === 0 ? 'There are no logs in these blocks, and that is proven, too: the headers’ blooms and receipts leave room for none.' : `${grouped(logs.length)} log${logs.length === 1 ? '' : 's'}, the newest first. All receipts of each block were checked.`),
      made > 0 && el('p', { class: 'note bad' }, verdictBadge('lie'), ` The node names ${grouped(made)} more, which do not exist.`),
      el('ul', { class: 'log' }, ...rows));
  });
  if (contract.value) void ask();
  return el('div', {}, form({ class: 'form' }, ask,
    el('div', { class: 'two' },
      field('Address of the contract', contract, 'Empty for all contracts.'),
      field('How many blocks', count, `The newest ones, up to ${grouped(BLOCKS)}.`)),
    el('div', {}, el('button', { class: 'button main' }, 'Prove the logs'))), result);
}
