// The playground's section: a development chain in this tab, either a new one or one that begins on a block of the server's network, with panels for
// accounts, payments, contracts and time.
import type { ChainProvider } from '../../../pkg/dev.js';
import { grouped, InputError, quantity, short, toAddress } from '../bytes.ts';
import { lab } from '../chain/lab.ts';
import { networkName } from '../chain/networks.ts';
import type { Session } from '../chain/session.ts';
import { serverAddress } from '../chain/source.ts';
import { forkOf } from '../chain/tab.ts';
import { interfaceOf } from '../contracts/interface.ts';
import { action, el, field, fill, form } from '../dom.ts';
import { Bench } from '../play/bench.ts';
import { accountsTable, payForm } from '../play/money.ts';
import { callPanel, deployForm } from '../play/programs.ts';
import { timePanel } from '../play/time.ts';
import { ownPart, reasonOf } from '../words.ts';

/** A panel with a title. */
const panel = (title: string, description: string, ...children: (Node | undefined)[]) => el('div', { class: 'card panel' }, el('h3', {}, title), el('p', { class: 'description' }, description), ...children);

/** Functions for fork.ts, which imports nothing. */
const tools = { action, el, field, fill, forkOf, form, grouped, InputError, interfaceOf, networkName, ownPart, quantity, reasonOf, serverAddress, short, toAddress };

/** The functions of the page that fork.ts needs. */
export type Tools = typeof tools;

/** The fork that is shown; another choice closes it. */
let fork: ChainProvider | undefined;

/** Shows a chain. For a fork, `standing` is the note about its proof, and `find` the form that adds contracts of its network. */
async function show(root: HTMLElement, session: Session | undefined, bench: Bench, description: string, standing?: HTMLElement, find?: HTMLElement): Promise<void> {
  bench.accounts = (await bench.ask('eth_accounts')) as string[];
  bench.tell('', description);
  // The page's light client follows only the chain of the page's source.
  const seen = () => (session?.source.chain === bench.source.chain ? session?.head : undefined);
  fill(root, standing,
    el('div', { class: 'panels' },
      panel('Pay', `${bench.accounts.length} accounts with free coins, whose keys are in this tab. The first ones:`, accountsTable(bench), payForm(bench)),
      panel('What happened', 'Each transaction is mined at once, with a merge-mining proof whose work is nearly free.', timePanel(bench, seen), bench.log),
      panel('Deploy a program', 'A contract is a small program that anyone can run and nobody can change.', deployForm(bench)),
      panel('Call it', 'Choose a program, and press one of its functions.', find, callPanel(bench))),
    el('div', { id: 'trace' }));
  standing?.focus();
}

/** Shows the new chain. */
async function open(root: HTMLElement, session: Session | undefined): Promise<void> {
  const above = session?.source.kind === 'tab' ? 'What you do here shows in the sections above, too.' : 'It is a chain of its own: the server’s chain stays as it is.';
  await show(root, session, new Bench(await lab(session?.source)), `The chain is ready. ${above}`);
}

/** Offers a chain that begins on a block of the server's network. */
const offer = async (root: HTMLElement, session: Session, card: HTMLElement) => (await import('../play/fork.ts')).choose(tools, session, card, async (chain, standing, find) => {
  fork = chain;
  standing.append(' ', action('Another chain', () => playgroundView(root, session)));
  const bench = new Bench({ chain });
  await show(root, session, bench, 'The chain is ready. The network stays as it is.', standing, find(bench));
});

/** Shows the section. On a practice chain it starts at once, otherwise a visitor chooses the chain. */
export function playgroundView(root: HTMLElement, session: Session | undefined): void {
  fork?.close();
  fork = undefined;
  const start = () => open(root, session).catch((error) => fill(root, el('p', { class: 'note bad' }, reasonOf(error))));
  if (session?.source.kind === 'tab') return void start();
  const card: HTMLElement = el('div', { class: 'card' },
    el('p', {}, 'Your server is left alone: this starts a small chain in your browser.'),
    el('div', { class: 'row' }, action('Start a chain in this tab', start, 'main'), session && action('Go on from the network', () => offer(root, session, card))));
  return fill(root, card);
}
