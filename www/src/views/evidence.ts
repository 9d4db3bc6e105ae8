// The evidence for a block besides its own proof, in words: where the chain starts, and what Bitcoin's chain shows above the block.
import type { BitcoinEvidence } from '../../../pkg/index.js';
import type { Start, Verification } from '../chain/session.ts';
import { ago, grouped } from '../bytes.ts';
import { el } from '../dom.ts';

/** A number of Bitcoin blocks in words. */
const blocks = (count: number): string => `${grouped(count)} Bitcoin block${count === 1 ? '' : 's'}`;

/** Bitcoin's evidence above a block, in sentences. */
export function bitcoinWords(bitcoin: BitcoinEvidence | null): string[] {
  if (!bitcoin) return ['Bitcoin’s blocks were not looked at: they could tell when the work was done.'];
  const { blocksAbove, newestAge, tags, verdict, reason } = bitcoin;
  // See `BitcoinTags` in pkg/index.d.ts.
  const { own, kin, foreign, ahead, none, withheld } = tags;
  const above = blocksAbove === 0
    ? 'No Bitcoin block commits to this block or to one above it yet.'
    : `${blocks(blocksAbove)} commit${blocksAbove === 1 ? 's' : ''} to this block or to one above it${newestAge === null ? '' : `, the newest ${ago(0, newestAge)}`}.`;
  const others = [[kin, 'hidden blocks of it'], [foreign, 'another chain'], [ahead, 'later blocks'], [none, 'none'], [withheld, 'not shown']] as const;
  const rest = others.filter(([count]) => count > 0).map(([count, name]) => `, ${grouped(count)} ${name}`);
  const sum = own + kin + foreign + ahead + none + withheld;
  return [
    above,
    ...(sum === 0 ? [] : [`The newest ${blocks(sum)} name: ${grouped(own)} this chain${rest.join('')}.`]),
    ...(verdict === 'held' ? [] : [`Bitcoin’s support of this chain is ${verdict}${reason ? `: ${reason}` : ''}.`]),
  ];
}

/** Where the chain starts, in a sentence. */
export function startWords({ kind, number, time }: Start): string {
  const since = number === 0 ? 'the first block' : `block ${grouped(number)} (${ago(time)})`;
  if (kind === 'checkpoint') return `Everything since ${since} was checked here; that block is trusted.`;
  if (kind === 'upstream') return `Everything since ${since} was checked here; that block is trusted as the node shows it, because each chain of this kind has its own.`;
  return `No block is trusted: the chain starts by ${kind}, and the work since ${since} counts.`;
}

/** Both as a list. */
export function evidenceView({ bitcoin, began }: Verification): HTMLElement {
  // No Bitcoin block names blocks of a development chain.
  const ofBitcoin = bitcoin || began?.kind !== 'upstream' ? bitcoinWords(bitcoin) : [];
  const lines = [...ofBitcoin, ...(began ? [startWords(began)] : [])];
  return el('ul', { class: 'evidence small', 'aria-label': 'What the block rests on' }, ...lines.map((line) => el('li', {}, line)));
}
