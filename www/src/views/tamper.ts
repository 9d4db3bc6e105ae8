// The section with a switch that makes a node lie: an ordinary wallet believes the lie, and the light client notices it (experiment.ts).
import { type Fault, experiment, NODES, type Outcome } from '../chain/experiment.ts';
import { lab } from '../chain/lab.ts';
import { LIES, type LieName } from '../chain/lies.ts';
import type { Session } from '../chain/session.ts';
import { grouped } from '../bytes.ts';
import { el, fill } from '../dom.ts';
import { plainly, reasonOf } from '../words.ts';

/** A node's lie in plain words, with the exact rule behind it. */
function caught({ node, rule }: Fault): HTMLElement {
  return el('div', { class: 'note good caught' },
    el('p', {}, el('strong', {}, `${node} was caught. `), plainly(rule)),
    el('details', {}, el('summary', {}, 'What the client noted'), el('p', { class: 'mono break' }, rule)));
}

/** The side of the wallet. */
function wallet(outcome: Outcome, lies: boolean): HTMLElement {
  const believed = lies && outcome.believed !== outcome.proven;
  return el('div', { class: believed ? 'side lie' : 'side' },
    el('h3', {}, 'An ordinary wallet, connected to Node A'),
    el('p', { class: 'value', id: 'believed' }, outcome.believed),
    el('p', { class: 'small' }, lies ? 'It shows the lie. It has no way to notice: it asked one node, and believed it.' : 'Node A is honest now, so this happens to be true.'));
}

/** The side of the light client. `helped`: it has an honest node too. */
function client(outcome: Outcome, lies: boolean, helped: boolean): HTMLElement {
  const { proven, refusal, faults } = outcome;
  const fault = faults.at(-1);
  const value = proven === undefined
    ? el('p', { class: 'value', id: 'answered' }, el('span', { class: 'badge good' }, 'lie refused'), ' No answer')
    : el('p', { class: 'value', id: 'answered' }, proven, ' ', el('span', { class: 'badge good' }, 'proven'));
  const alone = lies && !helped;
  const why = proven === undefined
    ? 'Better no answer than a false one. Add an honest node, and there is one.'
    : alone && fault ? 'It left out what Node A says, and ran the block again on proven state: what comes out is what the block commits to.'
    : lies && helped ? `${NODES[1]} brought the proof of the true answer. One honest node among any number of liars is enough.` : `Checked in ${grouped(Math.max(1, Math.round(outcome.millis)))} ms, from the first block to the answer.`;
  return el('div', { class: 'side good' },
    el('h3', {}, helped ? 'The light client in this tab, with Nodes A and B' : 'The light client in this tab, connected to Node A'),
    value, el('p', { class: 'small' }, why),
    fault ? caught(fault) : refusal !== undefined && caught({ node: NODES[0], rule: refusal, lie: false }));
}

/** Shows the section. */
export function tamperView(root: HTMLElement, session: Session | undefined): void {
  const lie = el('input', { type: 'checkbox', role: 'switch', id: 'lie' });
  const help = el('input', { type: 'checkbox', role: 'switch', id: 'help' });
  const result = el('div', { 'aria-live': 'polite', id: 'outcome' });
  let about: LieName = 'balance';
  let turn = 0;

  const run = async () => {
    turn += 1;
    const mine = turn;
    result.setAttribute('aria-busy', 'true');
    try {
      const outcome = await experiment(await lab(session?.source), about, { lies: lie.checked, helped: help.checked });
      if (mine !== turn) return;
      fill(result, el('p', { class: 'asked' }, 'The question: ', el('strong', {}, outcome.question)),
        el('div', { class: 'versus' }, wallet(outcome, lie.checked), client(outcome, lie.checked, help.checked)));
    } catch (error) {
      if (mine === turn) fill(result, el('p', { class: 'note bad' }, reasonOf(error)));
    } finally {
      if (mine === turn) result.removeAttribute('aria-busy');
    }
  };

  const choices = LIES.map(({ name, title, description }) => {
    const input = el('input', { type: 'radio', name: 'lie-about', value: name, checked: name === about });
    input.addEventListener('change', () => {
      about = name;
      void run();
    });
    return el('label', { class: 'choice' }, input, el('span', {}, title), el('span', { class: 'small' }, description));
  });
  lie.addEventListener('change', () => void run());
  help.addEventListener('change', () => void run());
  fill(root, el('div', { class: 'card demo' },
    el('div', { class: 'switches' },
      el('label', { class: 'switch' }, lie, 'Tamper with Node A'),
      el('label', { class: 'switch calm' }, help, 'Give the client an honest Node B, too'),
      el('span', { class: 'small' }, 'The example at the top of the page has one; here you decide.')),
    el('fieldset', {}, el('legend', {}, 'What Node A lies about'), el('div', { class: 'choices' }, ...choices)),
    result));
  // On a server's page the chain in this tab is loaded when the visitor comes near this section.
  if (session?.source.kind === 'tab') void run();
  else {
    fill(result, el('p', { class: 'hint' }, 'This section uses a small chain in this tab as its node; the server is left alone.'));
    const near = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      void run();
    }, { rootMargin: '200px' });
    near.observe(root);
  }
}
