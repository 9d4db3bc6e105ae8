// The first section of the page: a button makes a node lie, and the light client notices (experiment.ts).
import type { Outcome } from '../chain/experiment.ts';
import type { Source } from '../chain/source.ts';
import { action, el, fill } from '../dom.ts';
import { plainly, reasonOf } from '../words.ts';

const badge = (kind: string, text: string) => el('span', { class: `badge ${kind}` }, text);

/** The cards of the wallet and of this page after a run. */
function cards({ believed, proven, faults }: Outcome, lies: boolean): HTMLElement {
  const fault = faults.at(-1);
  const isWrong = lies && believed !== proven;
  return el('div', { class: 'versus' },
    el('div', { class: isWrong ? 'side lie' : 'side' },
      el('h2', {}, 'A wallet that trusts its node ', isWrong && badge('bad', 'wrong')),
      el('p', { class: 'value', id: 'shown' }, believed),
      el('p', {}, isWrong ? 'The wallet shows the lie. It cannot notice.' : 'The node is honest now, so the wallet happens to be right.')),
    el('div', { class: 'side good' },
      el('h2', {}, 'This page ', badge('good', lies && fault ? 'liar caught' : 'proven')),
      el('p', { class: 'value', id: 'noticed' }, proven ?? 'No answer: the page refuses the lie'),
      el('p', {}, lies && fault ? `The node was caught${proven === undefined ? '' : ', and a second, honest node proved this balance'}.` : 'Every step of the proof fits.'),
      lies && fault && el('details', {}, el('summary', {}, 'Show me the step'), el('p', {}, plainly(fault.rule)), el('p', { class: 'mono break small' }, fault.rule))));
}

/** The texts of the two cards before the button is pressed. */
const before = (): HTMLElement => el('div', { class: 'versus' },
  el('div', { class: 'side' }, el('h2', {}, 'A wallet that trusts its node'), el('p', {}, 'It asks one node and shows whatever the node says.')),
  el('div', { class: 'side' }, el('h2', {}, 'This page'), el('p', {}, 'It asks that node and a second one, demands proofs, and checks each step.')));

/**
 * Shows the section. Its chain is a development chain in this tab: the page's source, if that is one, else a new one, which starts with the first
 * press of the button (lab.ts).
 */
export function demoView(root: HTMLElement, source: () => Source | undefined): void {
  const shown = el('div', { 'aria-live': 'polite' });
  let lies = false;
  const run = async () => {
    try {
      // below.ts has what main.ts loads after the first section.
      const { experiment, lab } = await import('../below.ts');
      const outcome = await experiment(await lab(source()), 'balance', { lies: !lies, helped: true });
      lies = !lies;
      fill(shown, el('p', { class: 'small asked' }, `The question: ${outcome.question} Asked of a made-up node in this tab, which ${lies ? 'lies now' : 'is honest'}.`), cards(outcome, lies));
      button.textContent = lies ? 'Make the node honest again' : 'Make a node lie';
    } catch (error) {
      fill(shown, el('p', { class: 'note warn', role: 'alert' }, `The experiment cannot run in this browser: ${reasonOf(error)}.`));
    }
  };
  const button = action('Make a node lie', run, 'main');
  button.id = 'make-lie';
  fill(shown, before());
  fill(root, shown, el('div', { class: 'row' }, button, el('a', { href: '#tamper' }, 'Other lies')));
}
