// The ladder below an answer: the steps of its proof, from the proof of work to the answer. Each step shows its bytes when it is opened.
import { el, fill } from '../dom.ts';
import { asOneTabStop } from '../tab-stop.ts';

/** A step of the proof. */
export interface Step {
  readonly title: string;
  /** Whether the step was found to hold here; `undefined` if it is trusted. */
  readonly holds: boolean | undefined;
  /** The bytes and what they mean; made when the step is opened. */
  readonly open: () => Node[];
}

/** Number of ladders so far, from which their ids are made. */
let ladders = 0;

/** The mark of a step and its name for screen readers, by `holds`. */
const MARKS = new Map<boolean | undefined, readonly [mark: string, word: string]>([[true, ['✓', 'fits']], [false, ['✗', 'does not fit']], [undefined, ['○', 'trusted']]]);

/** Shows the steps as buttons. */
export function ladderView(steps: readonly Step[]): HTMLElement {
  ladders += 1;
  const id = `ladder-${ladders}`;
  const panel = el('div', { id, class: 'ladder-panel', 'aria-live': 'polite' });
  const buttons = steps.map((step, at) => {
    const [mark, word] = MARKS.get(step.holds) ?? ['○', 'trusted'];
    const button = el('button', { type: 'button', class: `rung ${step.holds === false ? 'bad' : step.holds ? 'good' : 'warn'}`, 'aria-expanded': 'false', 'aria-controls': id },
      el('span', { class: 'step', 'aria-hidden': 'true' }, at + 1), `${step.title} `, el('span', { role: 'img', 'aria-label': word }, mark));
    button.addEventListener('click', () => {
      const opens = button.getAttribute('aria-expanded') !== 'true';
      for (const other of buttons) other.setAttribute('aria-expanded', String(opens && other === button));
      fill(panel, ...(opens ? [el('h3', {}, `${at + 1}. ${step.title}`), ...step.open()] : []));
    });
    return button;
  });
  const title = steps.some(({ holds }) => holds === false) ? 'Why you should not believe this'
    : steps[0]?.holds === undefined ? 'Trusted, not proven' : 'Why you can believe this';
  return el('section', { class: 'card why', 'aria-label': title },
    el('h2', {}, title),
    el('p', { class: 'small' }, `${steps.length} steps to the answer. Open one to see its bytes; arrow keys move between steps.`),
    asOneTabStop(el('div', { class: 'ladder', role: 'group', 'aria-label': 'Steps' }, ...buttons)), panel);
}
