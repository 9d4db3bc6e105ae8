// Shows the instructions that a transaction of the playground ran.
import { grouped } from '../bytes.ts';
import { action, byId, el, fill } from '../dom.ts';
import type { Bench } from './bench.ts';

/** A step of the trace, as `debug_traceTransaction` returns it. */
interface Step {
  readonly op: string;
  readonly pc: number;
  readonly gas: number;
  readonly gasCost: number;
  readonly depth: number;
  readonly stack: readonly string[];
}

/** Most instructions that are shown. */
const SHOWN = 400;

/** A word without its leading zeros. */
const plain = (word: string | undefined): string => (word === undefined ? '' : `0x${word.replace(/^0x/, '').replace(/^0+(?=.)/, '')}`);

/** The first steps as a table. */
function table(steps: readonly Step[]): HTMLElement {
  const heads = ['Instruction', 'At', 'Gas left', 'Costs', 'Top of the stack before'].map((text) => el('th', { scope: 'col' }, text));
  const rows = steps.slice(0, SHOWN).map(({ op, pc, gas, gasCost, stack }) => el('tr', {},
    el('th', { scope: 'row', class: 'mono' }, op), el('td', {}, pc), el('td', {}, grouped(gas)), el('td', {}, grouped(gasCost)),
    el('td', { class: 'mono' }, plain(stack.at(-1)), stack.length > 1 && `, ${plain(stack.at(-2))}`, stack.length > 2 && ' …')));
  return el('div', { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Instructions' }, el('table', {}, el('thead', {}, el('tr', {}, ...heads)), el('tbody', {}, ...rows)));
}

/** Shows what a transaction did. */
async function show(bench: Bench, hash: string): Promise<void> {
  const trace = (await bench.ask('debug_traceTransaction', hash)) as { structLogs: readonly Step[] } | null;
  if (!trace) throw new Error('the chain no longer has this transaction: a snapshot took it back');
  const steps = trace.structLogs;
  const root = byId('trace');
  fill(root, el('h3', {}, 'Trace'),
    steps.length === 0
      ? el('p', { class: 'description' }, 'A plain payment runs no program, so there is nothing to trace.')
      : el('p', { class: 'description' }, `${grouped(steps.length)} instructions${steps.length > SHOWN ? `, the first ${SHOWN} of them` : ''}. Each takes its arguments from the top of a stack.`),
    steps.length > 0 && table(steps));
  root.scrollIntoView({ block: 'nearest' });
}

/** A button that shows the trace of a transaction. */
export const traceButton = (bench: Bench, hash: string): HTMLElement => action('Trace', () => bench.attempt(() => show(bench, hash)));
