// Puts errors into plain words, and defines the verdicts about a node's answers.
import { InputError } from './bytes.ts';

/**
 * Four verdicts on an answer (`proven`, `lie`, `unprovable`: there is no proof, `input`: the visitor's input is wrong), and `reverted`, the proven
 * fact that a call reverted.
 */
export type Verdict = 'proven' | 'lie' | 'unprovable' | 'input' | 'reverted';

/** The badge, the class of colours, and the meaning of each verdict. */
export const VERDICTS: Readonly<Record<Verdict, { readonly badge: string; readonly kind: string; readonly description: string }>> = {
  proven: { badge: 'proven', kind: 'good', description: 'The chain commits to it, and each step was checked in this tab.' },
  lie: { badge: 'caught lying', kind: 'bad', description: 'A node said something that the chain contradicts. The page counts it and shows the proven answer, if there is one.' },
  unprovable: { badge: 'cannot be proven', kind: 'warn', description: 'The proof is missing. Nobody lied as far as the page knows; another node may bring the proof.' },
  input: { badge: 'your input', kind: 'input', description: 'What was written names nothing that can be asked for. No node was asked.' },
  reverted: { badge: 'reverted', kind: 'warn', description: 'The contract refused the call, and that is proven.' },
};

/** Codes of JSON-RPC errors: parameters that make no sense, and calls that reverted. */
const INVALID = -32602;
const REVERTED: readonly unknown[] = [3, -32015];

/** Whether an error is a revert, which is a proven answer. Only the code counts, because a node may write any text. */
export const reverts = (error: unknown): boolean => REVERTED.includes((error as { code?: unknown } | null)?.code);

/** The client's own part of an error's text, without the words of a node. */
export const ownPart = (reason: string): string => reason.replace(/\bupstream error\b[^]*/, '');

/** Errors about rules that only false data breaks, with plain words. The first pattern that matches is used. */
const RULES: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/no RSKBLOCK: tag/, 'No proof of work names this block: the Bitcoin transaction that should name it names another one.'],
  [/node 0x[0-9a-f]+ is missing/, 'The proof does not hold together: each step must have the hash that the step above it names, and one has another hash.'],
  [/receiptsRoot/, 'The receipts do not belong to the block: their common hash is not the one in the block’s header.'],
  [/transactionsRoot/, 'The transactions do not belong to the block: their common hash is not the one in the block’s header.'],
  [/proof of work|target/i, 'The block does not show enough work.'],
];

/** Errors about missing proofs, with plain words and advice. */
const CAUSES: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/gives no functions/, 'There are no names of functions to show. Paste the ABI from the contract’s author.'],
  [/all are stock nodes/, 'The nodes of this page prove blocks, transactions, receipts and logs, but no balances, storage and calls. A node that proves state can: `rootlight light`, `follow` or `sidecar`.'],
  [/no response|Failed to fetch|HTTP status|timed? ?out/i, 'The node did not answer. The page asks it again by itself; press the button again in a moment.'],
  [/too old|stale|older than/i, 'The newest proven block is too old to answer from. The page waits for a newer one.'],
  [/^no proven block has/, 'The node shows no transaction and no block with this hash. It may not be mined yet, be on another chain, or be kept back: another node may show it. Unlike missing logs, of which each header tells, a missing transaction cannot be proven: any block may hold it.'],
  [/not known|unknown|no such|not found/i, 'The node does not know it. It may exist all the same: another node may show it. Look for a mistyped digit.'],
  [/no proof/i, 'The node gave no proof that holds. Another node may bring it.'],
];

/** An error in a plain sentence. The page shows the exact text below it. */
export const plainly = (reason: string): string =>
  [...RULES, ...CAUSES].find(([pattern]) => pattern.test(ownPart(reason)))?.[1] ?? 'There is no proof of an answer, so there is no answer. The exact error says more.';

/** The text of anything that was thrown. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String((error as { message?: unknown })?.message ?? error));

/** The verdict for an error. `lies` says whether a node was caught lying meanwhile, which is more important than the other verdicts about nodes. */
export function verdictOf(error: unknown, lies: boolean): Verdict {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof InputError || code === INVALID) return 'input';
  if (lies) return 'lie';
  return reverts(error) ? 'reverted' : 'unprovable';
}

/** The possible reasons of a revert without data. */
export const NO_REASON = 'gives no reason. Perhaps it has no such function, or the arguments do not fit';

/** The text about an error, by its verdict. */
export function verdictWords(verdict: Verdict, reason: string): string {
  if (verdict === 'input') return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
  if (verdict === 'reverted') return `The contract refused the call${/revert(?:ed)?$/.test(reason) ? `, and ${NO_REASON}` : ''}.`;
  return plainly(reason);
}
