// Errors in plain words.

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/no RSKBLOCK: tag/, 'No Bitcoin miner committed to this block: the Bitcoin transaction that should name it names another one. Making it look real would take the work of mining a Bitcoin block.'],
  [/node 0x[0-9a-f]+ is missing/, 'The proof does not hold together: each step must have the hash that the step above it names, and one has another hash.'],
  [/receiptsRoot/, 'The receipts do not belong to the block: their common hash is not the one in the block’s header.'],
  [/transactionsRoot/, 'The transactions do not belong to the block: their common hash is not the one in the block’s header.'],
  [/all are stock nodes/, 'The nodes of this page prove blocks, transactions, receipts and logs, but no balances, storage and calls. A node with state proofs can.'],
  [/no proof of account|no proof/, 'The upstream gave no proof that holds, so there is no answer.'],
  [/low|target|proof of work/i, 'The block does not show enough work.'],
];

/** Why something was refused, in a sentence for everybody; the exact text beside it is the error's own. */
export function plainly(reason: string): string {
  return WORDS.find(([pattern]) => pattern.test(reason))?.[1] ?? 'The data does not match what the chain commits to.';
}

/** The text of anything that was thrown. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String((error as { message?: unknown })?.message ?? error));
