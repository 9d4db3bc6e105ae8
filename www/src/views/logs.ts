// The explorer's form for logs, and the comparison of proven logs with those that the node states. Each log is proven by its receipt.
import type { Session, Verification } from '../chain/session.ts';
import { equal, fromHex, grouped, InputError, quantity, safeText, short, toAddress } from '../bytes.ts';
import { addressOf, number, TRANSFER } from '../contracts/abi.ts';
import { amountOf, type Decimals, decimalsOf } from '../contracts/decimals.ts';
import { action, el, field, fill, form } from '../dom.ts';
import { keccak } from '../proof/hash.ts';
import { follow, receiptKey } from '../proof/trie.ts';
import { link } from '../pages/common.ts';
import { valueOf } from './account.ts';
import { apart, claimInWords, claimOf, clipped, refusalView, resultDisplay, standing, verdictBadge } from './answer.ts';
import { trailView } from './trail.ts';

/** A log as `eth_getLogs` returns it. */
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

/** The number of newest blocks by default, as the text of the field. */
export const USUAL = '100';

/** Whether a log is a transfer of a token. */
const isTransfer = ({ topics: [event, from, to] }: Log): boolean => event === TRANSFER && Boolean(from) && Boolean(to);

/** The decimals of the tokens that these logs speak about. */
export const decimalsIn = (session: Session, logs: readonly Log[]): Promise<Decimals> =>
  decimalsOf(session, logs.filter(isTransfer).map(({ address }) => address));

/** The meaning of a log, as far as it is known. */
export function meaning(log: Log, decimals: Decimals): string {
  const [event, from, to] = log.topics;
  if (event === TRANSFER && from && to) {
    const amount = number(log.data);
    const source = BigInt(from) === 0n ? 'new tokens' : `from ${short(addressOf(from), 4, 4)}`;
    return `Transfer of ${amount === undefined ? '?' : amountOf(amount, log.address, decimals)}, ${source}, to ${short(addressOf(to), 4, 4)}`;
  }
  return event ? `event ${short(event, 4, 4)}, data ${short(log.data, 8, 8)}` : `data ${short(log.data, 8, 8)}`;
}

/** The path from the receipts root to the receipt that contains a log. */
export async function receiptTrail(session: Session, log: Log): Promise<HTMLElement> {
  const [block, nodes, raw] = await Promise.all([
    session.block(log.blockNumber),
    session.request('rsk_getTransactionReceiptNodesByHash', log.blockHash, log.transactionHash) as Promise<string[]>,
    session.request('rsk_getRawTransactionReceiptByHash', log.transactionHash) as Promise<string>,
  ]);
  if (!block) throw new Error('the block of this log is not known');
  const path = follow(block.receiptsRoot, receiptKey(Number(log.transactionIndex)), nodes.map(fromHex));
  const value = valueOf(path);
  const receipt = fromHex(raw);
  // A trie node has the hash of a long value, followed by its length, in place of the value.
  const holds = equal(value, receipt) || equal(value.subarray(0, 32), keccak(receipt));
  const made = trailView({ title: 'Proof of the receipt', block, root: 'receiptsRoot', path, holds, value: `the receipt of transaction ${short(log.transactionHash, 6, 6)}, ${grouped(receipt.length)} bytes, which contains this log` });
  made.open = true;
  return made;
}

/** A log of the list; `claimed` is the node's lie about it, if the node lies. */
function row(session: Session, log: Log, proven: string, claimed: string | undefined): HTMLElement {
  const proof = el('div');
  const show = action('Show its proof', () => receiptTrail(session, log).then((made) => fill(proof, made), (error) => fill(proof, refusalView(error))));
  return el('li', {},
    el('p', {}, el('span', { class: 'badge good' }, '✓'), ' ', el('strong', {}, proven)),
    el('p', { class: 'small' }, 'Block ', link('block', String(Number(log.blockNumber))), ' · contract ', link('address', log.address), ' · ', el('a', { href: `#/tx/${log.transactionHash}` }, 'its transaction')),
    claimed !== undefined && el('p', { class: 'note bad' }, verdictBadge('lie'), ` The node says: ${claimed}`),
    show, proof);
}

/** An answer about logs from both sides. */
export interface LogsAnswer {
  /** The proven logs of the newest blocks, newest first. */
  readonly logs: readonly Log[];
  readonly filter: { readonly fromBlock: string; readonly toBlock: string; readonly address?: string };
  readonly level: string | undefined;
  readonly verification: Verification | null;
  /** The node's unchecked answer. */
  readonly claim: unknown;
  /** The logs as a list, each beside a lie of the node about it. */
  readonly list: HTMLElement;
  /** Whether the node's answer differs: `bad` for a lie, `warn` if it is about another branch. */
  readonly differs: 'bad' | 'warn' | undefined;
}

/** The parts of a log that are compared, because the log in words leaves out bytes in which a node may lie. */
const PARTS = ['address', 'topics', 'data', 'blockNumber', 'blockHash'] as const;

/** A value as text, to compare it. */
const inJson = (value: unknown): string => (JSON.stringify(value) ?? 'missing').toLowerCase();

/** The position of a log in the chain, by which the logs of both sides are matched. */
const positionOf = ({ transactionHash, logIndex }: Partial<Log>): string => inJson([transactionHash, logIndex]);

/** How the node's log differs from the proven one, in words; `undefined` if it does not. */
function differenceOf(other: Partial<Log> | undefined, log: Log, decimals: Decimals): string | undefined {
  if (!other) return 'there is no such log';
  const parts = PARTS.filter((part) => inJson(other[part]) !== inJson(log[part]));
  if (parts.length === 0) return undefined;
  const words = claimInWords(other.data, () => meaning(other as Log, decimals)) ?? 'a log without data';
  return safeText(clipped(words === meaning(log, decimals) ? parts.map((part) => `${part} ${inJson(other[part])}`).join(', ') : words));
}

/** The difference of each proven log, in their order, and the number of logs that only the node states. */
function compared(logs: readonly Log[], claim: unknown, decimals: Decimals): [differences: readonly (string | undefined)[], madeUp: number] {
  if (!Array.isArray(claim)) return [[], 0];
  const claims = new Map((claim as (Partial<Log> | null)[]).map((each) => [positionOf(each ?? {}), each ?? {}]));
  const differences = logs.map((log) => differenceOf(claims.get(positionOf(log)), log, decimals));
  return [differences, claim.length - logs.filter((log) => claims.has(positionOf(log))).length];
}

/** The number of blocks in a visitor's text; throws for other text. */
export function countOf(text: string): number {
  const count = Number(text.replaceAll(/[\s,]/g, ''));
  if (!Number.isSafeInteger(count) || count < 1 || count > BLOCKS) throw new InputError(`write how many blocks, from 1 to ${grouped(BLOCKS)}`);
  return count;
}

/** The blocks that a question covers, in words. */
export function rangeOf({ trusted = -1 }: Session, { fromBlock, toBlock }: LogsAnswer['filter']): string {
  const [from, to] = [Number(fromBlock), Number(toBlock)];
  return `${from === to ? 'block' : `blocks ${grouped(from)} to`} ${grouped(to)}${from <= trusted && trusted <= to ? ` (block ${grouped(trusted)} is trusted)` : ''}`;
}

/** Asks for the logs of a contract, or of all, in the newest blocks. Lies of the node are counted. */
export async function logsAnswer(session: Session, address: string, count: number): Promise<LogsAnswer> {
  const filter = { fromBlock: quantity(Math.max(0, session.head - count + 1)), toBlock: quantity(session.head), ...(address ? { address } : {}) };
  const [{ result, level }, claim, verification] = await Promise.all([
    session.answer('eth_getLogs', filter), claimOf(session, 'eth_getLogs', filter), session.verification(filter.toBlock),
  ]);
  const logs = (result as Log[]).slice().reverse();
  const decimals = await decimalsIn(session, logs.slice(0, SHOWN));
  // A node that means another branch does not lie; whether it does is asked only if something differs.
  const [differences, madeUp] = compared(logs, claim, decimals);
  const wrong = logs.flatMap((log, at) => (differences[at] === undefined ? [] : [`log ${log.transactionHash} ${log.logIndex} ${differences[at]}`]));
  const block = wrong.length > 0 || madeUp > 0 ? await session.block(filter.toBlock) : null;
  /** The note that the node means another branch, if it does. */
  const otherBranch = block && (await apart(session, block));
  if (!otherBranch) for (const difference of wrong) session.recordLie(difference);
  const rows = logs.slice(0, SHOWN).map((log, at) => row(session, log, meaning(log, decimals), otherBranch ? undefined : differences[at]));
  const unlisted = otherBranch ? 0 : differences.slice(SHOWN).filter((difference) => difference !== undefined).length;
  const lies = otherBranch ? 0 : madeUp;
  if (lies > 0) session.recordLie(`logs ${filter.fromBlock} ${filter.toBlock} ${lies}`);
  const list = el('div', { class: 'found' },
    el('p', {}, logs.length === 0 ? `There are no logs in ${rangeOf(session, filter)}. That is proven, too: each header has a filter (a bloom) of its block’s logs.` : `${grouped(logs.length)} log${logs.length === 1 ? '' : 's'} in ${rangeOf(session, filter)}, the newest first. All receipts of each block were checked.`),
    logs.length > SHOWN && el('p', { class: 'small' }, `The newest ${SHOWN} are listed.`),
    otherBranch,
    unlisted > 0 && el('p', { class: 'note bad' }, verdictBadge('lie'), ` The node says something else of ${grouped(unlisted)} that ${unlisted === 1 ? 'is' : 'are'} not listed.`),
    lies > 0 && el('p', { class: 'note bad' }, verdictBadge('lie'), ` The node names ${grouped(lies)} more, which do not exist.`),
    el('ul', { class: 'log' }, ...rows));
  return { logs, filter, level, verification, claim, list, differs: otherBranch ? 'warn' : wrong.length > 0 || lies > 0 ? 'bad' : undefined };
}

/** The form of a question about logs; `ask` gets the texts of its fields. */
export function logsQuestion(address: string, count: string, ask: (address: string, count: string) => Promise<unknown>): HTMLFormElement {
  const contract = el('input', { value: address, autocomplete: 'off', spellcheck: 'false' });
  const blocks = el('input', { value: count, inputmode: 'numeric', autocomplete: 'off' });
  return form({ class: 'form' }, () => ask(contract.value.trim(), blocks.value),
    el('div', { class: 'two' },
      field('Address of the contract', contract, 'Empty for all contracts.'),
      field('How many blocks', blocks, `The newest ones, up to ${grouped(BLOCKS)}.`)),
    el('div', {}, el('button', { class: 'button main' }, 'Prove the logs')));
}

/** The explorer's form, and the answer below it. */
export function logsForm(session: Session): HTMLElement {
  const result = el('div');
  const show = resultDisplay(result, session);
  const ask = (address: string, count: string) => show(async () => {
    const { level, verification, list } = await logsAnswer(session, address && toAddress(address), countOf(count));
    return el('div', {}, list, standing(level, verification));
  });
  const { token = '' } = session.source;
  if (token) void ask(token, USUAL);
  return el('div', {}, logsQuestion(token, USUAL, ask), result);
}
