// Shared parts of the pages of blocks, transactions, accounts, tokens and logs: facts, links, tools, and the first steps from the work to an
// answer.
import { serverKey } from '../chain/key.ts';
import { networkOf } from '../chain/networks.ts';
import type { Block, Session, Verification } from '../chain/session.ts';
import { digits, grouped, reversed, safeText, short, toHex } from '../bytes.ts';
import { action, type Child, el, fill, form } from '../dom.ts';
import { type MiningProof, prove } from '../proof/mining.ts';
import { levelBadge } from '../views/answer.ts';
import { startWords } from '../views/evidence.ts';
import { goTo } from '../views/search.ts';
import type { Step } from '../views/ladder.ts';

/** A link to the page of a block, transaction, address or token. */
export const link = (kind: 'block' | 'tx' | 'address' | 'token', id: string, text = kind === 'block' ? `#${grouped(Number(id))}` : short(id, 4, 4)): HTMLElement =>
  el('a', { href: `#/${kind}/${id}`, class: 'mono', title: id }, text);

/** Puts text on the clipboard, and says whether that worked. */
export function copyButton(text: string, label = 'Copy'): HTMLElement {
  const button = action(label, async () => {
    const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    button.textContent = done ? 'Copied' : 'The browser refuses: select and copy';
    setTimeout(() => { button.textContent = label; }, 2_000);
  }, 'quiet');
  return button;
}

/** The name of a fact, and its value. */
export type Fact = readonly [name: string, ...value: Child[]];

/** Facts as a table of names and values. */
export const factsView = (...facts: readonly Fact[]): HTMLElement =>
  el('dl', { class: 'facts table' }, ...facts.map(([name, ...value]) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value))));

/** The heading of a page: its subject, its hash or address, the level of the answer and the depth of its block. */
export function headingView(title: string, id: string, verification: Verification | null): HTMLElement {
  const depth = Number(verification?.depth ?? 0);
  return el('header', { class: 'page-head' },
    el('h1', {}, title),
    el('p', {}, el('span', { class: 'mono break' }, id), ' ', copyButton(id), ...(verification?.canonical === false ? [el('span', { class: 'badge warn' }, 'not on the chain')] : [levelBadge(undefined, verification),
      el('span', { class: 'small' }, ` ${depth === 0 ? 'no block' : `${grouped(depth)} block${depth === 1 ? '' : 's'}`} on top`)])));
}

/** A line about the start of the chain below an answer, with a link to the page of its block. */
export const restsView = ({ number }: Block, verification: Verification | null): HTMLElement | false =>
  verification?.began !== undefined && verification.began !== null && el('p', { class: 'small rests', id: 'rests-on' },
    startWords(verification.began), ' ', el('a', { href: `#/block/${Number(number)}` }, `More on the page of block ${grouped(Number(number))}`));

/** A proof as a file, which `rootlight verify` checks. */
export interface ProofFile {
  /** The kind of document, as `rootlight verify` names it. */
  readonly subject: 'header' | 'receipt' | 'account';
  readonly document: unknown;
  /** What the file proves, if the page shows more than that. */
  readonly covers?: string;
  /** The name of the file. */
  readonly name: string;
}

/** Lets the browser save a file. */
function save({ document: content, name }: ProofFile): void {
  const address = URL.createObjectURL(new Blob([JSON.stringify(content, null, 1)], { type: 'application/json' }));
  el('a', { href: address, download: name }).click();
  // Later, because the browser reads the file after the click.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The shell command that sends the same request to the server; `undefined` for a chain in this tab, which no command reaches. */
function curl(session: Session, method: string, params: readonly unknown[]): string | undefined {
  if (session.source.kind === 'tab') return undefined;
  const server = new URL(`./${serverKey() ? 'YOUR-KEY' : ''}`, new URL(location.pathname, location.origin));
  return `curl -sS ${server.href} -H 'content-type: application/json' -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}'`;
}

/** Most characters of a raw answer that are shown. */
const MOST_RAW = 20_000;

/**
 * The node's own answer to a question (`claim`), and ways to check the page elsewhere: a proof file and a command. `compared` is the note about a
 * difference between that answer and the proven one, if there is any.
 */
export function toolsView(session: Session, compared: HTMLElement | false, claim: unknown, question: readonly [method: string, ...params: unknown[]], file?: ProofFile): HTMLElement {
  const [method, ...params] = question;
  const command = curl(session, method, params);
  const network = networkOf(session.source.chainId)?.option ?? 'mainnet';
  const check = file && el('code', { class: 'mono break' }, `rootlight verify ${file.subject} ${file.name} `, network !== 'mainnet' && el('span', { class: 'option' }, `--network ${network}`));
  const raw = JSON.stringify(claim, null, 1) ?? 'no answer';
  const isHeader = file?.subject === 'header';
  const isTrusted = isHeader && Number((file.document as Block).number) === session.trusted;
  return el('section', { class: 'card', 'aria-label': 'What the node said' },
    el('h2', {}, 'What the node said'),
    compared || el('p', { id: 'same' }, claim === undefined || claim === null ? 'Nothing to compare.' : `The same as ${isTrusted ? 'the trusted block' : 'what is proven here'}.`),
    el('details', {}, el('summary', {}, 'Its raw JSON'), el('pre', { class: 'mono raw', tabindex: '0' }, safeLines(raw.slice(0, MOST_RAW)))),
    el('div', { class: 'row' },
      file && action(isHeader ? 'Header as file' : 'Proof as file', () => save(file)),
      command && copyButton(command, 'Copy as curl')),
    check && el('p', { class: 'small' }, 'The file is checked offline by ', check, '.', file?.covers ? ` ${file.covers}` : ''));
}

/** A safe text that keeps its line ends. */
const safeLines = (text: string): string => text.split('\n').map(safeText).join('\n');

/** The proof of work of a block; `undefined` for blocks without one, or with one in an early form that the page cannot draw. */
export async function miningProof(session: Session, block: Block): Promise<MiningProof | undefined> {
  try {
    const rawHeader = String(await session.request('rsk_getRawBlockHeaderByHash', block.hash));
    return prove({
      number: Number(block.number), hash: block.hash, rawHeader, coinbase: block.bitcoinMergedMiningCoinbaseTransaction,
      merkleProof: block.bitcoinMergedMiningMerkleProof, hashForMergedMining: block.hashForMergedMining,
    });
  } catch {
    return undefined;
  }
}

/** Bytes, written out. */
export const bytesView = (bytes: Uint8Array | string): HTMLElement => el('p', { class: 'mono break' }, typeof bytes === 'string' ? bytes : toHex(bytes));
/** An explanation. */
export const descriptionView = (text: string): HTMLElement => el('p', { class: 'description' }, text);

/** The first two steps of every ladder (ladder.ts): the work, and the block that it names. */
export function workSteps(session: Session, block: Block, proof: MiningProof | undefined): Step[] {
  const number = grouped(Number(block.number));
  if (!proof) {
    return [
      { title: 'The start of the chain', holds: undefined, open: () => [descriptionView('This block shows no work that can be drawn here: it is the block where the chain starts, or an early one. It is trusted, or the blocks above it prove it by naming its hash.')] },
      { title: `Block ${number}`, holds: undefined, open: () => [bytesView(block.hash)] },
    ];
  }
  // Whether all checks with these names hold.
  const good = (...names: string[]) => proof.checks.every(({ name, holds }) => holds || !names.includes(name));
  const network = networkOf(session.source.chainId);
  return [
    { title: `${network?.step ?? 'Somebody worked on a header'} …${digits(reversed(proof.bitcoinHash)).slice(-4)}`, holds: good('work', 'branch'), open: () => [
      descriptionView(network?.work ?? ''), descriptionView('The header of 80 bytes, its hash, and the limit that the hash is below:'),
      bytesView(proof.header.bitcoinHeader), bytesView(`0x${digits(reversed(proof.bitcoinHash))}`), bytesView(`0x${proof.target.toString(16).padStart(64, '0')}`)] },
    { title: `The header names Rootstock block ${number}`, holds: good('coinbase', 'commitment', 'hash'), open: () => [
      descriptionView('The coinbase transaction below the header contains these 32 bytes, which follow from the block’s header; the block’s own hash is below.'),
      bytesView(proof.commitment), bytesView(block.hash)] },
  ];
}

/** The third step of ladders about state: the state root. */
export const stateStep = ({ stateRoot }: Block): Step => (
  { title: 'The block names all its state', holds: true, open: () => [descriptionView('The state root in the header of the block: one hash for all accounts.'), bytesView(stateRoot)] });

/** A form that leads to another page; `address` makes the fragment of that page from the fields. */
export function questionView(button: string, address: () => string, ...fields: Child[]): HTMLElement {
  const wrong = el('div', { 'aria-live': 'polite' });
  return el('div', {}, form({ class: 'form' }, () => goTo(wrong, address), ...fields, el('div', {}, el('button', { class: 'button' }, button))), wrong);
}

/** Adds advice to an error, which the page shows below the error. */
export const guided = (error: unknown, ...next: Child[]): unknown => Object.assign(Object(error), { next: el('p', { class: 'note' }, ...next) });

/** Fills `root` with a part of the page when its work has ended, or with the problem: an error of one part does not end the page. */
export function fillLater(root: HTMLElement, work: Promise<Node>, problem: (error: unknown) => Node): HTMLElement {
  void work.then((made) => fill(root, made), (error) => fill(root, problem(error)));
  return root;
}
