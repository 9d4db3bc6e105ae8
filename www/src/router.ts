// Shows the page that the address names, such as `#/block/123`. All other fragments are sections of the first page.
import type { Session } from './chain/session.ts';
import { safeText } from './bytes.ts';
import { byId, el, fill } from './dom.ts';
import { refusalView } from './views/answer.ts';

/** The names of the functions that make each page (named.ts), by the first part of the address. The functions get the other parts. */
const PAGES = { block: 'blockPage', tx: 'transactionPage', address: 'addressPage', token: 'tokenPage', logs: 'logsPage' } as const;

/** The subject of each page, in words. */
const NAMES: Readonly<Record<keyof typeof PAGES, string>> = { block: 'the block', tx: 'the transaction', address: 'the address', token: 'the token', logs: 'the logs of' };

/** Most characters of the address that are shown. */
const MOST_SHOWN = 100;

/** Puts the subject of the page into the search field, so that a visitor can correct a mistake there. */
function showInSearch(name: keyof typeof PAGES, given: string): void {
  const field = document.querySelector<HTMLInputElement>('#search input');
  if (field && field !== document.activeElement) field.value = name === 'logs' ? '' : given;
}

/** The parts of the address; `undefined` for the first page. */
const parts = (): string[] | undefined => (location.hash.startsWith('#/') ? location.hash.slice(2).split('/') : undefined);

const isName = (name: string): name is keyof typeof PAGES => Object.hasOwn(PAGES, name);

/** Loads the file with the pages. */
export const pages = (): Promise<typeof import('./pages/named.ts')> => import('./pages/named.ts');

/** The number of the newest page; an earlier one (`mine`) that is still being made is not shown. */
let turn = 0;

/** The link to the first page. */
const back = (): HTMLElement => el('p', {}, el('a', { href: '#top' }, '← First page'));

/** Shows the page that the address names. */
export async function route(session: Session | undefined): Promise<void> {
  turn += 1;
  const mine = turn;
  const [name = '', ...rest] = parts() ?? [];
  const root = byId('page');
  const isPage = parts() !== undefined;
  const was = document.documentElement.dataset['view'];
  document.documentElement.dataset['view'] = isPage ? 'page' : 'home';
  if (!isPage) {
    fill(root);
    // The browser could not scroll to the section, which was hidden at that time.
    if (was === 'page') document.getElementById(location.hash.slice(1))?.scrollIntoView();
    return;
  }
  if (!isName(name)) return fill(root, back(), el('h1', {}, 'There is no such page'), el('p', { class: 'note input' }, `This page has addresses such as #/block/123, not ${safeText(location.hash.slice(0, 80))}.`));
  const given = safeText(rest.join('/')).slice(0, MOST_SHOWN);
  showInSearch(name, given);
  if (!session) return fill(root, el('p', { class: 'loading' }, 'Waits for the source of data.'));
  fill(root, el('p', { class: 'loading', role: 'status' }, 'Asking for proofs…'));
  const before = await session.lies();
  const making = pages().then((made) => made[PAGES[name]](session, ...rest));
  const made = await making.catch(async (error: unknown) => el('article', {}, el('h1', {}, 'No proven answer'),
    el('p', { id: 'given' }, `Looked for: ${NAMES[name]} `, el('span', { class: 'mono break' }, given)),
    refusalView(error, (await session.lies()) > before), (error as { next?: Node } | null)?.next));
  if (mine !== turn || session.isClosed) return;
  fill(root, back(), made);
  const heading = root.querySelector<HTMLElement>('h1');
  heading?.setAttribute('tabindex', '-1');
  heading?.focus({ preventScroll: true });
  root.scrollIntoView();
}

/** Shows the page of each new address. `session` returns the running client. */
export function followAddress(session: () => Session | undefined): void {
  addEventListener('hashchange', () => void route(session()));
}
