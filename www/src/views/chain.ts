// The section with the newest verified blocks, and facts about the chosen one.
import type { Block, Session, Verification } from '../chain/session.ts';
import { ago, grouped, quantity, short } from '../bytes.ts';
import { action, el, fill } from '../dom.ts';
import { reasonOf } from '../words.ts';
import { asOneTabStop } from '../tab-stop.ts';
import { levelBadge } from './answer.ts';

/** Number of blocks that are shown. */
const SHOWN = 8;

/** Milliseconds between two updates of "12 s ago". */
const CLOCK_INTERVAL = 10_000;

/** Depths at which a block has a name of its own: the tags `safe` and `finalized`. */
const SAFE = 12;
const FINAL = 120;

/** How much a block at this depth is trusted, in words. */
const finality = (depth: number): string => (depth >= FINAL ? ', final' : depth >= SAFE ? ', safe' : `, safe from ${SAFE}`);

/** A block as a button. */
function blockCard(block: Block, isChosen: boolean, select: () => void): HTMLElement {
  const number = Number(block.number);
  const count = block.transactions.length;
  return el('li', {},
    el('button', { type: 'button', class: 'block', 'aria-pressed': String(isChosen), on: { click: select } },
      number === 0 ? el('span', { class: 'tick small' }, 'trusted') : el('span', { class: 'tick', role: 'img', 'aria-label': 'proven' }, '✓'),
      el('strong', {}, `#${grouped(number)}`),
      el('span', { class: 'mono small' }, short(block.hash, 3, 3)),
      el('span', { class: 'small' }, `${count} transaction${count === 1 ? '' : 's'}`),
      number === 0 ? el('span', { class: 'small' }, 'the beginning') : el('time', { class: 'small', 'data-time': String(Number(block.timestamp)) }, ago(Number(block.timestamp)))));
}

/** Facts about a block, as lists. */
function blockFacts(block: Block, verification: Verification): HTMLElement[] {
  const number = Number(block.number);
  const depth = Number(verification.depth);
  const row = (name: string, ...value: (Node | string)[]) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value));
  return [
    el('dl', { class: 'facts' },
      row('Block', el('a', { href: `#/block/${number}` }, `#${grouped(number)}`), ' ', levelBadge(undefined, verification)),
      row('Depth', depth === 0 ? 'the newest block: nothing on top yet' : `${grouped(depth)} block${depth === 1 ? '' : 's'} on top${finality(depth)}`),
      depth > 0 && row('Work on top', verification.workOnTop === null ? 'unknown' : grouped(BigInt(verification.workOnTop)))),
    el('dl', { class: 'facts wide' },
      row('Hash', el('span', { class: 'mono break' }, block.hash)),
      row('Parent', el('span', { class: 'mono break' }, block.parentHash))),
  ];
}

/** Adds the newest blocks to `blocks`, replaces those that are not on the chain any more, and removes those that are not shown. */
async function renew(blocks: Map<number, Block>, session: Session, head: number): Promise<void> {
  const first = Math.max(0, head - SHOWN + 1);
  for (let number = head; number >= first; number -= 1) {
    const known = blocks.get(number);
    const child = blocks.get(number + 1);
    // If the next block does not name this one as its parent, a reorganisation has replaced this one.
    if (known && number < head && child?.parentHash === known.hash) continue;
    const block = await session.block(quantity(number));
    if (block) blocks.set(number, block);
  }
  for (const number of [...blocks.keys()]) if (number > head || number < first) blocks.delete(number);
}

/** Updates the ages of the blocks in a list, until the list is not shown any more. */
function keepAges(root: HTMLElement, list: HTMLElement): void {
  const clock = setInterval(() => {
    if (!root.isConnected || !root.contains(list)) return clearInterval(clock);
    for (const time of list.querySelectorAll<HTMLElement>('[data-time]')) time.textContent = ago(Number(time.dataset['time']));
    return undefined;
  }, CLOCK_INTERVAL);
}

/** Shows the newest blocks. `choose` is called with the chosen block, and whether a visitor chose it. */
export function chainView(root: HTMLElement, session: Session, choose: (number: number, asked: boolean) => void): void {
  const list = el('ol', { class: 'chain', 'aria-label': 'Newest blocks, newest first' });
  const about = el('div', { class: 'about' });
  const tools = el('div', { class: 'row' });
  const blocks = new Map<number, Block>();
  let chosen: number | undefined;

  function pick(number: number, asked: boolean): void {
    chosen = number;
    redraw();
    void describe(number);
    choose(number, asked);
  }

  const redraw = () => {
    const focused = list.contains(document.activeElement) ? document.activeElement?.querySelector('strong')?.textContent : undefined;
    const shown = [...blocks].sort(([a], [b]) => b - a).slice(0, SHOWN);
    fill(list, ...shown.map(([number, block]) => blockCard(block, number === chosen, () => pick(number, true))));
    asOneTabStop(list);
    if (focused) [...list.querySelectorAll('button')].find((button) => button.querySelector('strong')?.textContent === focused)?.focus();
  };

  async function describe(number: number): Promise<void> {
    const at = quantity(number);
    const [block, verification] = await Promise.all([session.block(at), session.verification(at)]).catch(() => [null, null] as const);
    if (block && verification && chosen === number) fill(about, ...blockFacts(block, verification));
  }

  async function update(head: number): Promise<void> {
    try {
      await renew(blocks, session, head);
      redraw();
    } catch (error) {
      fill(about, el('p', { class: 'note bad' }, `The newest blocks cannot be shown: ${reasonOf(error)}.`));
    }
    if (chosen === undefined || chosen > head) pick(head, false);
    else void describe(chosen);
  }

  fill(root, tools, list, about);
  tools.append(action('Show the newest block', () => pick(session.head, true)));
  void session.makesBlocks().then((itMay) => {
    if (itMay) tools.append(action('Mine a block', () => session.uncheckedAnswer('evm_mine').catch((error) => fill(about, el('p', { class: 'note bad' }, reasonOf(error))))));
  });
  session.onHead((head) => void update(head));
  void update(session.head);
  keepAges(root, list);
}
