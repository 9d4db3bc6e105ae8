// Draws the path from a block to a value: block, root in its header, trie nodes, value. Each step contains the hash of the next.
import type { Block } from '../chain/session.ts';
import { digits, grouped, short, toHex } from '../bytes.ts';
import { el } from '../dom.ts';
import type { PathNode, TriePath } from '../proof/trie.ts';

/** A path in a trie, and what its end means. */
export interface Trail {
  readonly title: string;
  readonly block: Block;
  /** The root in the header below which the path is. */
  readonly root: 'stateRoot' | 'receiptsRoot';
  readonly path: TriePath;
  /** The meaning of the value at the end. */
  readonly value: string;
  /** Whether the bytes at the end have that meaning, as computed here. */
  readonly holds: boolean;
}

/** The names of the roots. */
const ROOTS = { stateRoot: 'state root', receiptsRoot: 'receipts root' } as const;

/** The bytes of a node. The reference to the next node, or the value, is marked. */
function marked({ bytes, next, value }: PathNode): HTMLElement {
  const part = next ?? value;
  if (!part) return el('p', { class: 'mono' }, digits(bytes));
  const cut = (start: number, end: number) => digits(bytes.subarray(start, end));
  return el('p', { class: next ? 'mono' : 'mono value' }, cut(0, part.start), el('mark', {}, cut(part.start, part.end)), cut(part.end, bytes.length));
}

/** The marked part of a node in words. `last`: the node is the end of the path; `found`: the path ends in a value. */
function describe(node: PathNode, last: boolean, found: boolean): string {
  if (node.next) return `the ${node.next.right ? 'right' : 'left'} branch, marked: ${node.next.embedded ? 'it is so short that it stands here whole' : 'the hash of the next trie node'}`;
  if (!last) return 'the path goes on';
  return found ? `${node.value?.isLong ? 'the hash of the value and its length' : 'the value'}, marked` : 'the path ends here, so there is nothing at this place';
}

/** A node as a step of the drawing. */
function step(node: PathNode, index: number, { nodes, found }: TriePath): HTMLElement {
  const name = nodes[index - 1]?.next?.embedded ? 'stands whole in the one above' : `hash ${short(toHex(node.hash), 4, 4)}`;
  return el('li', {}, el('p', {}, el('strong', {}, `Trie node ${index + 1}`), ` · ${name} · ${describe(node, index === nodes.length - 1, found)}`), marked(node));
}

/** The rule for the nodes of a path, in words. The page says "trie node" for nodes of a trie, because "node" alone means a server. */
export const LINKED = 'Each trie node must have the hash that the one above it names, or stands whole in that one if it is short. What leads on is marked in yellow, the end of the path in the colour of “proven”.';

/** The title of the steps in the trie. */
export const trieTitle = (count: number): string => `${grouped(count)} trie node${count === 1 ? '' : 's'}`;

/** The nodes of a path, one after the other. */
export const nodeViews = (path: TriePath): HTMLElement =>
  el('ol', { class: 'trail' }, ...path.nodes.map((node, at) => step(node, at, path)));

/** Draws a path; folded at first, because it is long. */
export function trailView(trail: Trail): HTMLDetailsElement {
  const { block, path, root } = trail;
  const nodes = path.nodes.map((node, at) => step(node, at, path));
  const good = path.linked && trail.holds;
  const count = path.nodes.length + 2;
  return el('details', { class: 'path' },
    el('summary', {}, `${trail.title}: ${count} steps from the block to the value`, el('span', { class: good ? 'badge good' : 'badge bad' }, good ? 'every step fits' : 'a step does not fit')),
    el('ol', { class: 'trail' },
      el('li', {}, el('p', {}, el('strong', {}, `Block ${grouped(Number(block.number))}`), ` · ${short(block.hash, 6, 6)} · the work that is drawn above vouches for this hash`)),
      el('li', {}, el('p', {}, el('strong', {}, `Its ${ROOTS[root]}`), ` · one of the header’s fields: the hash of the first trie node`), el('p', { class: 'mono' }, block[root])),
      ...nodes,
      el('li', {}, el('p', {}, el('strong', {}, 'The value'), ` · ${trail.value}`))));
}
