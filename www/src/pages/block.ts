// The page of a block: its header's facts, its transactions, and the steps of its proof of work.
import { networkOf } from '../chain/networks.ts';
import type { Block, Session } from '../chain/session.ts';
import { ago, digits, grouped, InputError, quantity, safeText, short } from '../bytes.ts';
import { el } from '../dom.ts';
import { draw } from '../proof/draw.ts';
import type { MiningProof } from '../proof/mining.ts';
import { claimInWords, claimOf, comparison, refusalView } from '../views/answer.ts';
import { evidenceView } from '../views/evidence.ts';
import { ladderView, type Step } from '../views/ladder.ts';
import { bytesView, descriptionView, factsView, fillLater, guided, headingView, link, miningProof, toolsView, workSteps } from './common.ts';

/** Most transactions that are listed. */
const LISTED = 200;

/** A block by its number, its hash, or the word `latest`. */
export async function blockOf(session: Session, id: string): Promise<Block> {
  if (/^0x[0-9a-f]{64}$/.test(id)) {
    const found = (await session.request('eth_getBlockByHash', id, false)) as Block | null;
    if (!found) throw new Error(`block ${short(id)} is not known`);
    return found;
  }
  if (id !== 'latest' && !/^\d{1,15}$/.test(id)) throw new InputError('a block is a number or a hash');
  const number = id === 'latest' ? session.head : Number(id);
  if (number > session.head) throw guided(new InputError(`block ${grouped(number)} is above the newest proven one, ${grouped(session.head)}: it is not mined yet, or the node is behind`), 'Blocks up to ', link('block', String(session.head)), ' can be shown.');
  const block = await session.block(quantity(number));
  if (!block) throw new Error(`block ${grouped(number)} is not known: this client proves blocks from its start on`);
  return block;
}

/** A note that a block is not on the chain, with a link to the block at this height that is. */
const asideView = ({ number }: Block): HTMLElement => el('p', { class: 'note warn', id: 'aside' },
  'This block is not on the chain: the heaviest chain has ', link('block', String(Number(number)), 'another block at this height'), '. What happened in this one counts only if blocks of the chain have it, too.');

/** The steps from the work to the block, and the blocks on top. `isAside`: the block is not on the chain. */
function steps(session: Session, block: Block, proof: MiningProof | undefined, isAside: boolean, depth: number): Step[] {
  const above: Step = isAside
    ? { title: 'Not on the chain: no block of it is on top', holds: false, open: () => [asideView(block)] }
    : depth === 0
    ? { title: 'The newest block: none on top yet', holds: true, open: () => [descriptionView('Each block that comes will name the hash of this one, and add its own work.')] }
    : { title: `${grouped(depth)} block${depth === 1 ? '' : 's'} on top`, holds: true, open: () => [descriptionView('Each block above names the hash of the one below, so that all of them would have to be made again.')] };
  const [work, names] = workSteps(session, block, proof);
  if (!work || !names || !proof) return [work, names, above].filter((step) => step !== undefined);
  const good = (name: string) => proof.checks.some((check) => check.name === name && check.holds);
  const { length } = proof.steps;
  return [
    work,
    length === 0
      ? { title: 'The header contains the hash of the coinbase alone', holds: good('branch'), open: () => [descriptionView('The header’s work vouches for one transaction only, the coinbase, whose hash is the header’s Merkle root:'), bytesView(proof.coinbaseHash)] }
      : { title: `${length} Merkle step${length === 1 ? '' : 's'} to the coinbase`, holds: good('branch'), open: () => [descriptionView('The hash of the coinbase, and the neighbours that lead up to the header’s Merkle root.'), bytesView(proof.coinbaseHash), ...proof.steps.map(({ right }) => bytesView(right))] },
    { ...names, title: `The coinbase names block ${grouped(Number(block.number))}` },
    { title: `The block’s hash …${digits(proof.header.hash).slice(-4)}`, holds: good('hash'), open: () => [descriptionView('Keccak-256 of the header, computed here from its fields:'), bytesView(proof.header.hash)] },
    above,
  ];
}

/** Makes the page; `id` is a number, a hash or `latest`. */
export async function blockPage(session: Session, id = 'latest'): Promise<HTMLElement> {
  const block = await blockOf(session, id);
  const number = Number(block.number);
  // Asked by hash if the visitor gave one: a block off the chain cannot be asked for by its number.
  const isByHash = id === block.hash;
  const question: [method: string, block: string, full: boolean] = isByHash ? ['eth_getBlockByHash', block.hash, false] : ['eth_getBlockByNumber', block.number, false];
  const [verification, proof, claim] = await Promise.all([session.verification({ blockHash: block.hash }), miningProof(session, block), claimOf(session, ...question)]);
  const isAside = verification?.canonical === false;
  const answered = claim as Partial<Block> | null | undefined;
  const line = (name: string, key: keyof Block) => ({ name, claimed: answered ? claimInWords(answered[key] ?? 0, safeText) : undefined, proven: String(block[key]) });
  const compared = await comparison(session, { lines: [line('Hash', 'hash'), line('State', 'stateRoot'), line('Time', 'timestamp')], block }, !isByHash);
  const { transactions } = block;
  const isMined = networkOf(session.source.chainId)?.isMined ?? false;
  return el('article', {},
    headingView(`Block ${grouped(number)}`, block.hash, verification),
    isAside && asideView(block),
    el('p', { class: 'row' }, number > 0 && link('block', String(number - 1), '← the one before'), number < session.head && link('block', String(number + 1), 'the next one →')),
    factsView(
      ['Made', number === 0 ? 'the beginning' : `${ago(Number(block.timestamp))} (${new Date(1000 * Number(block.timestamp)).toISOString().replace('.000Z', ' UTC').replace('T', ' ')})`],
      ['Miner', link('address', block.miner)],
      ['Parent', number === 0 ? 'none' : link('block', isAside ? block.parentHash : String(number - 1), short(block.parentHash, 6, 6))],
      ['Gas', `${grouped(Number(block.gasUsed))} of ${grouped(Number(block.gasLimit))}`],
      ['Difficulty', grouped(BigInt(block.difficulty))],
      ['Uncles', grouped(block.uncles.length)]),
    verification && !isAside && evidenceView(verification),
    ladderView(steps(session, block, proof, isAside, Number(verification?.depth ?? 0))),
    el('section', { class: 'card', 'aria-label': 'Transactions' },
      el('h2', {}, `${grouped(transactions.length)} transaction${transactions.length === 1 ? '' : 's'}`),
      el('ol', { class: 'hashes' }, ...transactions.slice(0, LISTED).map((hash) => el('li', {}, link('tx', hash, short(hash, 12, 12))))),
      transactions.length > LISTED && el('p', { class: 'small' }, `The first ${LISTED} are listed.`)),
    toolsView(session, compared, claim, question, { subject: 'header', document: block, name: `block-${number}.json` }),
    proof && el('section', { class: 'card', 'aria-label': 'Proof of work' }, el('h2', {}, 'Proof of work'), drawing(proof, isMined)));
}

/** The drawing of the proof of work with all its bytes, folded; made when it is opened. */
function drawing(proof: MiningProof, isMined: boolean): HTMLElement {
  const body = el('div');
  const folded = el('details', {}, el('summary', {}, 'Byte by byte'), body);
  folded.addEventListener('toggle', () => {
    if (folded.open && body.childElementCount === 0) fillLater(body, draw(proof, isMined).then((drawn) => el('div', {}, el('h3', {}, `Why block ${grouped(proof.number)} counts`), drawn)), refusalView);
  });
  return folded;
}
