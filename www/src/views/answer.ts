// An answer twice: what the upstream says, and what was proven here.
import type { Session, Verification } from '../chain/session.ts';
import { grouped } from '../bytes.ts';
import { type Child, el, fill } from '../dom.ts';
import { plainly, reasonOf } from '../words.ts';
import { evidenceView } from './evidence.ts';
import { type Trail, trailView } from './trail.ts';

/** One line of an answer. */
export interface Line {
  readonly name: string;
  readonly claimed: string;
  readonly proven: string;
  readonly mono?: boolean;
}

export interface AnswerCard {
  readonly lines: readonly Line[];
  readonly level: string | undefined;
  readonly verification: Verification | null;
  readonly trails: readonly Trail[];
  readonly after?: Child;
}

const KINDS: Readonly<Record<string, string>> = { verified: 'good', local: 'good' };

function side(title: string, kind: string, lines: readonly (readonly [string, string, boolean])[], ...more: Child[]): HTMLElement {
  const values = lines.map(([name, value, mono]) => el('div', {}, el('dt', {}, name), el('dd', { class: mono ? 'mono break' : 'value' }, value)));
  return el('div', { class: `side ${kind}` }, el('h3', {}, title), el('dl', { class: 'facts' }, ...values), ...more);
}

/** The level of an answer, how deep its block is, and what that rests on. */
export function standing(level: string | undefined, verification: Verification | null): HTMLElement {
  const shown = level ?? verification?.level ?? 'verified';
  const depth = Number(verification?.depth ?? 0);
  const where = verification ? ` at block ${grouped(Number(verification.blockNumber))}, ${depth === 0 ? 'the newest' : `${grouped(depth)} deep`}` : '';
  return el('div', { class: 'standing' },
    el('p', {}, el('span', { class: `badge ${KINDS[shown] ?? 'warn'}` }, shown), el('span', { class: 'small' }, where)),
    verification && evidenceView(verification));
}

export function answerView(card: AnswerCard): HTMLElement {
  const differs = card.lines.some(({ claimed, proven }) => claimed !== proven);
  return el('div', { class: 'answer' },
    el('div', { class: 'versus' },
      side('The node says, unchecked', differs ? 'bad' : '', card.lines.map(({ name, claimed, mono }) => [name, claimed, mono ?? false])),
      side('Proven here', 'good', card.lines.map(({ name, proven, mono }) => [name, proven, mono ?? false]), standing(card.level, card.verification))),
    differs && el('p', { class: 'note bad' }, 'The two differ: what the node says is not what the chain commits to.'),
    ...card.trails.map(trailView),
    card.after);
}

/** An error in plain words, with its exact text below. */
export function refusalView(error: unknown): HTMLElement {
  const reason = reasonOf(error);
  const revert = /revert/i.test(reason);
  return el('div', { class: 'note bad', role: 'alert' },
    el('p', {}, el('span', { class: 'badge bad' }, revert ? 'reverted' : 'refused'), ' ', revert ? 'The contract refused the call.' : plainly(reason)),
    el('details', {}, el('summary', {}, 'The exact error'), el('p', { class: 'mono break' }, reason)));
}

/** Shows the result of work, or why there is none. Of two runs, the later one stays. */
export function shower(root: HTMLElement): (work: () => Promise<HTMLElement>) => Promise<void> {
  let turn = 0;
  root.setAttribute('aria-live', 'polite');
  return async (work) => {
    turn += 1;
    const mine = turn;
    try {
      const made = await work();
      if (mine === turn) fill(root, made);
    } catch (error) {
      if (mine === turn) fill(root, refusalView(error));
    }
  };
}

/** Characters of an answer that are shown: nobody reads more, and a node may send megabytes. */
const SHOWN = 2_000;

/** Bytes as they are, or their beginning. */
export const clipped = (bytes: string): string => (bytes.length <= SHOWN ? bytes : `${bytes.slice(0, SHOWN)}… (${grouped((bytes.length - 2) / 2)} bytes)`);

/** Longest answer of a node that is read at all. */
const READABLE = 200_000;

/** What a node says, in words. It may say anything, which must not hide the proven answer. */
export function heard(claim: unknown, read: (answer: string) => string): string {
  if (claim === undefined || claim === null) return 'no answer';
  try {
    if (typeof claim === 'string' && claim.length <= READABLE) return read(claim);
  } catch {
    // It is no answer to this question.
  }
  return 'nothing that makes sense';
}

/** What the upstream says, or that it says nothing. */
export const said = (session: Session, method: string, ...params: readonly unknown[]): Promise<unknown> =>
  session.claim(method, ...params).catch(() => undefined);
