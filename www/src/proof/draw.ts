// Draws a merge-mining proof (mining.ts) in four stages: the header of Bitcoin or in its form, Merkle branch, coinbase transaction, Rootstock
// header. Fields are explained when a visitor points at them (explainer.ts).
import { digits, grouped, reversed, short } from '../bytes.ts';
import { yieldToBrowser, el } from '../dom.ts';
import { asOneTabStop } from '../tab-stop.ts';
import { type Check, type MiningProof, TAG } from './mining.ts';
import { TOP } from './header.ts';
import { Explainer, type Field, hint, verdict } from './explainer.ts';

/** Whether a check of a proof holds. */
const holds = (proof: MiningProof, name: Check['name']) => proof.checks.some((check) => check.name === name && check.holds);

/** A stage of the drawing. */
function stage(number: number, title: string, description: string, ...children: (Node | false)[]): HTMLElement {
  const parts = children.filter((child): child is Node => child !== false);
  return el('li', { class: 'stage' }, el('h4', {}, el('span', { class: 'step', 'aria-hidden': 'true' }, number), title), el('p', { class: 'description' }, description), ...parts);
}

/** How many tries a hash below the target takes on average, in words. */
function tries(target: bigint): string {
  const count = (1n << 256n) / (target > 0n ? target : 1n);
  const size = count.toString().length;
  // Below a million: written out.
  if (size <= 6) return `${grouped(count)} tries on average: work is nearly free on this chain`;
  const names = ['thousand', 'million', 'billion', 'trillion', 'quadrillion', 'quintillion', 'sextillion', 'septillion'];
  const step = Math.min(names.length, Math.floor((size - 1) / 3));
  return `about ${grouped(count / 10n ** BigInt(3 * step))} ${names[step - 1]} tries on average`;
}

/** Stage 1: the header with the work, its hash and the limit. */
function bitcoinHeader(proof: MiningProof, explain: Explainer, isMined: boolean): HTMLElement {
  const header = proof.header.bitcoinHeader;
  const part = (start: number, end: number) => header.subarray(start, end);
  const fields: Field[] = [
    { name: 'version', bytes: part(0, 4), description: 'The version of the block’s form.' },
    { name: 'previous block', bytes: part(4, 36), description: 'The hash of the block before, in Bitcoin’s byte order.' },
    { name: 'Merkle root', bytes: part(36, 68), description: 'One hash for all transactions of the block. The branch below leads up to it.', link: 'step0', kind: 'key' },
    { name: 'time', bytes: part(68, 72), description: 'When the miner began, in seconds since 1970.' },
    { name: 'bits', bytes: part(72, 76), description: 'How low the hash must be for Bitcoin. Rootstock has a difficulty of its own.' },
    { name: 'nonce', bytes: part(76, 80), description: 'What miners change, billions of times a second, until the hash is low enough.' },
  ];
  const hash = digits(reversed(proof.bitcoinHash));
  const zeros = /^0*/.exec(hash)?.[0] ?? '';
  const target = proof.target.toString(16).padStart(64, '0');
  const compare = el('dl', { class: 'compare mono' },
    el('dt', {}, 'its hash'), el('dd', {}, el('span', { class: 'zeros' }, zeros), hash.slice(zeros.length)),
    el('dt', {}, 'limit'), el('dd', {}, el('span', { class: 'zeros' }, /^0*/.exec(target)?.[0]), target.replace(/^0*/, '')));
  return stage(1, isMined ? 'Bitcoin header' : 'Header in Bitcoin’s form', isMined ? 'Bitcoin miners search for a header of 80 bytes whose hash is a very small number. That search is the work.'
    : 'A header of 80 bytes in Bitcoin’s form, whose hash is small enough. No Bitcoin miner took part: on this chain such a header costs next to nothing.',
    explain.row(fields), compare,
    verdict(holds(proof, 'work'), `The hash is below the limit. Finding such a header takes ${tries(proof.target)}.`, 'The hash is not below the limit: there is no work in this block.'));
}

/** Stage 2: the steps from the coinbase transaction to the Merkle root, the root first. */
function merkleBranch(proof: MiningProof, explain: Explainer, isMined: boolean): HTMLElement {
  const block = isMined ? 'Bitcoin block' : 'block in Bitcoin’s form';
  const total = proof.steps.length;
  const title = total === 1 ? 'Merkle branch, 1 step' : `Merkle branch, ${total} steps`;
  if (total === 0) {
    return stage(2, 'Merkle branch', `A ${block} folds all its transactions into one hash, two by two. This one has a single transaction, so there is nothing to fold: its hash is the Merkle root.`,
      explain.row([{ name: 'Merkle root', bytes: proof.merkleRoot, description: 'The hash of the only transaction, and the field of the header above.', link: 'step0', kind: 'key' }]),
      verdict(holds(proof, 'branch'), 'It equals the Merkle root in the header above.', 'It differs from the Merkle root in the header above.'));
  }
  const rows = [...proof.steps.entries()].reverse().map(([index, step]) => {
    const level = total - 1 - index;
    const name = index === 0 ? 'coinbase hash' : 'hash from below';
    return el('div', { class: 'fold' },
      explain.field({ name: level === 0 ? 'Merkle root' : 'hash', bytes: step.parent, description: 'SHA-256, twice, of the two hashes beside it.', link: `step${level}`, kind: 'key' }),
      el('span', { class: 'sign', 'aria-hidden': 'true' }, '='),
      explain.field({ name, bytes: step.left, description: 'What the step below gives: the coinbase is the first transaction, so it is always on the left.', link: `step${level + 1}` }),
      el('span', { class: 'sign', 'aria-hidden': 'true' }, '+'),
      explain.field({ name: 'its neighbour', bytes: step.right, description: 'The hash of all other transactions on this side. The proof brings it along.', kind: 'dim' }));
  });
  return stage(2, title, `A ${block} folds all its transactions into one hash, two by two. To show that one transaction is among thousands, its neighbours on the way up are enough.`,
    asOneTabStop(el('div', { class: 'folds' }, ...rows)),
    verdict(holds(proof, 'branch'), 'The top equals the Merkle root in the header above, recomputed here.', 'The top differs from the Merkle root in the header above.'));
}

/** Stage 3: the coinbase transaction, which contains the hash of the Rootstock header after a tag. */
function coinbase(proof: MiningProof, explain: Explainer, isMined: boolean): HTMLElement {
  const { midstate, tail, tagAt, steps, keccakBytes } = proof;
  /** The position of the commitment. */
  const at = tagAt + TAG.length;
  const hasTag = tagAt >= 0;
  // Since RSKIP-110: 20 bytes of the hash, then fork detection data and the block number.
  const hasForkDetection = keccakBytes === 20 && hasTag;
  const fields: Field[] = [
    { name: 'bytes before', bytes: midstate.subarray(0, 8), description: 'How many bytes of the transaction come before. Only their hash state is needed, so the proof stays short.', kind: 'dim' },
    { name: 'hash state', bytes: midstate.subarray(8), description: 'What SHA-256 had in memory after them. It is continued here.', kind: 'dim' },
    { name: 'transaction', bytes: hasTag ? tail.subarray(0, tagAt) : tail, description: 'The part of the transaction in front of the tag.', kind: 'dim' },
  ];
  if (hasTag) {
    fields.push(
      { name: '“RSKBLOCK:”', bytes: TAG, description: 'The tag, in ASCII, by which Rootstock finds its own bytes in the transaction.', kind: 'key' },
      { name: 'hash of the Rootstock header', bytes: tail.subarray(at, at + keccakBytes), description: 'The hash for merged mining of the Rootstock header below. Changing anything in that header changes these bytes, and with them every hash above.', link: 'commit', kind: 'key' });
    if (hasForkDetection) {
      fields.push(
        { name: 'fork detection', bytes: tail.subarray(at + 20, at + 28), description: 'A trace of earlier headers and uncles, by which a hidden chain can be told apart (RSKIP-110).' },
        { name: 'block number', bytes: tail.subarray(at + 28, at + 32), description: `The height of the Rootstock block: ${grouped(proof.number)}.`, link: 'number' });
    }
    fields.push({ name: 'rest', bytes: tail.subarray(at + 32), description: 'The end of the transaction.', kind: 'dim' });
  }
  return stage(3, 'Coinbase transaction', isMined ? 'The first transaction of a Bitcoin block belongs to the miner, who may write into it. Miners write the hash of a Rootstock block, and so their work counts for both chains.'
    : 'The first transaction of a Bitcoin block belongs to its miner, who may write into it. On this chain the node writes the hash of its own block there.',
    explain.row(fields),
    explain.row([{ name: 'coinbase hash', bytes: proof.coinbaseHash, description: 'SHA-256, twice, of the whole transaction: the state above, continued over these bytes.', link: `step${steps.length}`, kind: 'key' }]),
    verdict(holds(proof, 'coinbase'), 'The transaction contains this Rootstock block’s hash for merged mining.', 'The transaction names another block.'));
}

/** Stage 4: the fields of the Rootstock header. */
function rootstockHeader(proof: MiningProof, explain: Explainer): HTMLElement {
  const { header } = proof;
  const fields: Field[] = header.fields.map(({ name, bytes, description }) => ({
    name, bytes, description,
    ...(name === 'number' ? { link: 'number' } : {}),
    ...(name === TOP ? { kind: 'dim' as const } : {}),
  }));
  return stage(4, `Rootstock header, block ${grouped(proof.number)}`, 'The header sums up the block. Its hash for merged mining is what the transaction above contains.',
    explain.row(fields),
    explain.row([
      { name: 'hash for merged mining', bytes: proof.commitment.subarray(0, proof.keccakBytes), description: 'Keccak-256 of the header without the one at the top: what the coinbase must contain.', link: 'commit', kind: 'key' },
      { name: 'block hash', bytes: header.hash, description: 'Keccak-256 of the header with the one at the top: the name of this block, which the next block repeats.', link: 'hash', kind: 'key' },
    ]),
    verdict(holds(proof, 'commitment') && holds(proof, 'hash'), `Recomputed here, the block hash is ${short(`0x${digits(header.hash)}`)}: the same that the chain names.`, 'The hash differs from the one that was named.'));
}

/** Draws a proof, with pauses for the browser between stages. `isMined`: whether the chain's work is costly, as on the main network. */
export async function draw(proof: MiningProof, isMined: boolean): Promise<HTMLElement> {
  const drawing = el('ol', { class: 'drawing' });
  const box = el('div', { class: 'proof-box' });
  const explain = new Explainer(box);
  for (const stage of [bitcoinHeader, merkleBranch, coinbase, rootstockHeader]) {
    drawing.append(stage(proof, explain, isMined));
    await yieldToBrowser();
  }
  box.append(hint(), drawing, explain.panel);
  return box;
}
