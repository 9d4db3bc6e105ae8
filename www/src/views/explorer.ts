// The explorer's section: one of four forms at a time.
import type { Session } from '../chain/session.ts';
import { el, fill } from '../dom.ts';
import { asOneTabStop } from '../tab-stop.ts';
import { accountForm } from './account.ts';
import { callForm, tokenForm } from './contract.ts';
import { logsForm } from './logs.ts';

/** The forms, from left to right. */
const FORMS: readonly (readonly [name: string, description: string, make: (session: Session) => HTMLElement])[] = [
  ['Account', 'How much does somebody have?', accountForm],
  ['Token', 'Who has how much of a token?', tokenForm],
  ['Contract', 'What does a program on the chain answer? It is run here, on proven state.', callForm],
  ['Logs', 'What happened? Contracts write logs, for example for each payment of a token.', logsForm],
];

/** Shows the section. */
export function explorerView(root: HTMLElement, session: Session): void {
  const body = el('div', { class: 'card' });
  const tabs = FORMS.map(([name, description, make]) => {
    const tab = el('button', { type: 'button', class: 'tab', 'aria-pressed': 'false' }, name);
    tab.addEventListener('click', () => {
      for (const other of tabs) other.setAttribute('aria-pressed', String(other === tab));
      fill(body, el('p', {}, description), make(session));
    });
    return tab;
  });
  /** Whether a visitor has used the section. Until then it changes to logs if the upstream proves no state, which the other forms need. */
  let isChosen = false;
  root.addEventListener('pointerdown', () => { isChosen = true; });
  root.addEventListener('keydown', () => { isChosen = true; });
  session.onChange(() => {
    if (session.lacksState && !isChosen) tabs.at(-1)?.click();
  });
  fill(root, el('div', { class: 'row' }, asOneTabStop(el('div', { class: 'tabs', role: 'group', 'aria-label': 'What to ask for' }, ...tabs))), body);
  tabs.at(session.lacksState ? -1 : 0)?.click();
}
