// The development chain of this tab: accounts, payments, contracts, time.
import { lab } from '../chain/lab.ts';
import type { Session } from '../chain/session.ts';
import { action, el, fill } from '../dom.ts';
import { Bench } from '../play/bench.ts';
import { accountsTable, payForm } from '../play/money.ts';
import { callPanel, deployForm } from '../play/programs.ts';
import { timePanel } from '../play/time.ts';
import { reasonOf } from '../words.ts';

const panel = (title: string, tells: string, ...children: Node[]) => el('div', { class: 'card panel' }, el('h3', {}, title), el('p', { class: 'tells' }, tells), ...children);

async function open(root: HTMLElement, session: Session | undefined): Promise<void> {
  const bench = new Bench(await lab(session?.source));
  bench.accounts = (await bench.ask('eth_accounts')) as string[];
  const above = session?.source.kind === 'tab' ? 'What you do here shows in the sections above, too.' : 'It is a chain of its own: the server’s chain stays as it is.';
  bench.tell('', `The chain is ready. ${above}`);
  fill(root,
    el('div', { class: 'panels' },
      panel('Pay', `${bench.accounts.length} accounts with free coins, whose keys are in this tab. The first ones:`, accountsTable(bench), payForm(bench)),
      panel('What happened', 'Each transaction is mined at once, with a real merge-mining proof.', timePanel(bench, () => session?.head ?? 0), bench.log),
      panel('Deploy a program', 'A contract is a small program that anyone can run and nobody can change.', deployForm(bench)),
      panel('Call it', 'Choose a program, and press one of its functions.', callPanel(bench))),
    el('div', { id: 'trace' }));
}

export function playgroundView(root: HTMLElement, session: Session | undefined): void {
  const start = () => open(root, session).catch((error) => fill(root, el('p', { class: 'note bad' }, reasonOf(error))));
  if (session?.source.kind === 'tab') return void start();
  return fill(root, el('div', { class: 'card' }, el('p', {}, 'Your server is left alone: this starts a small chain in your browser.'), el('div', { class: 'row' }, action('Start a chain in this tab', start, 'main'))));
}
