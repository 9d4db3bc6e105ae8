// Shows an answer twice, as the upstream states it and as it was proven here, with the verdict about a difference.
import type { Block, Session, Verification } from '../chain/session.ts';
import { grouped, safeText } from '../bytes.ts';
import { type Child, el, fill } from '../dom.ts';
import { reasonOf, reverts, type Verdict, VERDICTS, verdictOf, verdictWords } from '../words.ts';
import { evidenceView } from './evidence.ts';
import { type Trail, trailView } from './trail.ts';

/** One line of an answer. */
export interface Line {
  readonly name: string;
  /** The node's answer; `undefined` if there is none. */
  readonly claimed: string | undefined;
  readonly proven: string;
  /** Whether the values are bytes, shown in a monospaced font. */
  readonly mono?: boolean;
}

/** An answer as the explorer shows it. */
export interface AnswerCard {
  readonly lines: readonly Line[];
  /** The level of the answer if it is less than proven. */
  readonly level: string | undefined;
  /** The block that the answer is about. */
  readonly block: Block;
  readonly verification: Verification | null;
  /** The paths that prove it. */
  readonly trails: readonly Trail[];
  /** A part of the page below them. */
  readonly after?: Child;
}

/** One side of the comparison: names and values. */
const side = (title: string, kind: string, lines: readonly (readonly [name: string, value: string, mono: boolean])[], ...more: Child[]): HTMLElement => {
  const values = lines.map(([name, value, mono]) => el('div', {}, el('dt', {}, name), el('dd', { class: mono ? 'mono break' : 'value' }, safeText(value))));
  return el('div', { class: `side ${kind}` }, el('h3', {}, title), el('dl', { class: 'facts' }, ...values), ...more);
};

/** The badge of a verdict. */
export const verdictBadge = (verdict: Verdict): HTMLElement => el('span', { class: `badge ${VERDICTS[verdict].kind}` }, VERDICTS[verdict].badge);

/** Whether a block is the trusted one at which the chain starts. */
export const isTrusted = (verification: Verification | null): boolean => /^(checkpoint|upstream)$/.test(verification?.origin ?? '');

/** The badge of a level. The page says "proven" for the client's `verified`. Answers about the trusted block itself are trusted. */
export function levelBadge(level: string | undefined, verification: Verification | null): HTMLElement {
  if (level === undefined && isTrusted(verification)) return el('span', { class: 'badge warn' }, 'trusted');
  const shown = level ?? verification?.level ?? 'verified';
  return el('span', { class: `badge ${/^(verified|local)/.test(shown) ? 'good' : 'warn'}` }, shown === 'verified' ? 'proven' : shown);
}

/** The level of an answer, the depth of its block, and the evidence for that block. */
export function standing(level: string | undefined, verification: Verification | null): HTMLElement {
  const depth = Number(verification?.depth ?? 0);
  const where = verification ? ` at block ${grouped(Number(verification.blockNumber))}, ${depth === 0 ? 'the newest' : `${grouped(depth)} deep`}` : '';
  return el('div', { class: 'standing' },
    el('p', {}, levelBadge(level, verification), el('span', { class: 'small' }, where)),
    verification && evidenceView(verification));
}

/**
 * A note that the node speaks about another block of this height, if it does. Its answer is no lie then, because it is about that other block.
 */
export async function apart(session: Session, block: Block): Promise<HTMLElement | undefined> {
  const branch = await session.branchAt(block);
  if (branch === 'same') return undefined;
  const more = branch === 'other' ? 'speaks about that one' : 'that one is not proven';
  return el('p', { class: 'note warn' }, verdictBadge('unprovable'), ` The node names another block ${grouped(Number(block.number))} than the one that is proven here, and ${more}. The two cannot be compared.`);
}

/**
 * Compares the node's answer with the proven one. A difference is shown, and counted if it is a lie. `branches` says whether the
 * node may mean another block than the proven one, which it may by a number, but not by a hash.
 */
export async function comparison(session: Session, { lines, block }: Pick<AnswerCard, 'lines' | 'block'>, branches = true): Promise<HTMLElement | false> {
  const differing = lines.filter(({ claimed, proven }) => claimed !== undefined && claimed !== proven);
  const other = differing.length > 0 && branches && (await apart(session, block));
  if (other) return other;
  if (differing.length > 0) {
    session.recordLie(`${block.hash} ${differing.map(({ name, claimed }) => `${name} ${clipped(claimed ?? '')}`).join()}`);
    return el('p', { class: 'note bad' }, verdictBadge('lie'), ' The two differ: what the node says is not what the chain commits to. The status above counts this lie.');
  }
  const silent = lines.some(({ claimed }) => claimed === undefined);
  return silent && el('p', { class: 'note warn' }, 'The node gives no answer of its own to this question, so there is nothing to compare. The proven answer stands.');
}

/** Compares both answers, and shows them with the proof. */
export async function answerView(session: Session, card: AnswerCard): Promise<HTMLElement> {
  const compared = await comparison(session, card);
  const lied = compared && compared.classList.contains('bad');
  const claimed = card.lines.map(({ name, claimed, mono }) => [name, claimed ?? 'no answer', mono ?? false] as const);
  return el('div', { class: 'answer' },
    el('div', { class: 'versus' },
      side('The node says, unchecked', lied ? 'bad' : compared ? 'warn' : '', claimed),
      side('Proven here', 'good', card.lines.map(({ name, proven, mono }) => [name, proven, mono ?? false]), standing(card.level, card.verification))),
    compared,
    ...card.trails.map(trailView),
    card.after);
}

/** An error in plain words, with its exact text below. */
export function refusalView(error: unknown, lies = false): HTMLElement {
  const reason = safeText(reasonOf(error));
  const verdict = verdictOf(error, lies);
  const words = verdict === 'lie' && reverts(error) ? `A node was caught. ${verdictWords('reverted', reason)}` : verdictWords(verdict, reason);
  return el('div', { class: `note ${VERDICTS[verdict].kind}`, role: 'alert', 'data-verdict': verdict },
    el('p', {}, verdictBadge(verdict), ' ', words),
    verdict !== 'input' && el('details', {}, el('summary', {}, 'The exact error'), el('p', { class: 'mono break' }, reason)));
}

/** Returns a function that shows the result of work in `root`, or why there is none. Of two runs, the result of the later one stays. */
export function resultDisplay(root: HTMLElement, session: Session): (work: () => Promise<HTMLElement>) => Promise<void> {
  let turn = 0;
  root.setAttribute('aria-live', 'polite');
  return async (work) => {
    turn += 1;
    const mine = turn;
    const before = await session.lies();
    try {
      const made = await work();
      if (mine === turn) fill(root, made);
    } catch (error) {
      const lies = (await session.lies()) > before;
      if (mine === turn) fill(root, refusalView(error, lies));
    }
  };
}

/** Most characters of an answer that are shown, because a node may send megabytes. */
const SHOWN = 2_000;

/** Bytes in hexadecimal, or the beginning of long ones. */
export const clipped = (bytes: string): string => (bytes.length <= SHOWN ? bytes : `${bytes.slice(0, SHOWN)}… (${grouped((bytes.length - 2) / 2)} bytes)`);

/** Longest answer of a node that is read, in characters. */
const READABLE = 200_000;

/** A node's answer in words, or that it makes no sense: any answer is shown, so that it does not hide the proven one. `undefined` without an answer. */
export function claimInWords(claim: unknown, words: (answer: string) => string): string | undefined {
  if (claim === undefined || claim === null) return undefined;
  try {
    if (typeof claim === 'string' && claim.length <= READABLE) return words(claim);
  } catch {
    // The text does not have the form of an answer to this question.
  }
  return 'nothing that makes sense';
}

/** A proven answer in words. */
export const provenInWords = (answer: unknown, words: (answer: string) => string): string => claimInWords(answer, words) ?? 'nothing';

/** The upstream's unchecked answer; `undefined` if there is none. */
export const claimOf = (session: Session, method: string, ...params: readonly unknown[]): Promise<unknown> =>
  session.uncheckedAnswer(method, ...params).catch(() => undefined);
