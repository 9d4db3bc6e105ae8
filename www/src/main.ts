// Starts the page: chooses a source of data, starts a light client that does not trust it, and shows the sections. It also replaces the source
// when the visitor or a failure asks for that.
import { takeKey } from './chain/key.ts';
import { Session } from './chain/session.ts';
import { networkOf } from './chain/networks.ts';
import { serverSource, type Source } from './chain/source.ts';
import { Trouble, troubleOf } from './chain/trouble.ts';
import { yieldToBrowser, byId, drawn, el, fill } from './dom.ts';
import { holdLinkedSections } from './links.ts';
import { followAddress, pages, route } from './router.ts';
import { theme } from './theme.ts';
import { practiceView, troubleView } from './views/banner.ts';
import { demoView } from './views/demo.ts';
import { searchView } from './views/search.ts';
import { statusView } from './views/status.ts';
import { reasonOf } from './words.ts';
import { allowWorkers } from './workers.ts';

/** The running client; a change of the source replaces it. */
let running: Session | undefined;

/** The number of the newest start. An earlier start (`mine`) that is still running then shows nothing. */
let turn = 0;

/** How many times the server has failed since it last worked. */
let failures = 0;

/** Ends the countdown to the next attempt. */
let stopWaiting = () => {};

/** Begins with the server that the page came from. */
const ask = () => void begin('server');

/** Begins with a practice chain in this tab. Only a visitor's click leads here. */
const practise = () => void begin('tab');

/** The sections about the source's chain, and the chain in this tab. */
const below = (): Promise<typeof import('./below.ts')> => import('./below.ts');

/** The sections that need no source. */
const further = (): Promise<typeof import('./further.ts')> => import('./further.ts');

/** Starts with a source of this kind. */
async function begin(kind: Source['kind']): Promise<void> {
  turn += 1;
  const mine = turn;
  stopWaiting();
  if (running) clear();
  try {
    const source = await (kind === 'server' ? serverSource() : (await below()).tabSource());
    if (mine !== turn) return source.chain?.close();
    await follow(source, mine);
  } catch (error) {
    if (mine === turn) await failed(kind, error, mine);
  }
}

/** Takes down what a former source showed. */
function clear(): void {
  running?.close();
  running = undefined;
  delete document.documentElement.dataset['ready'];
  for (const id of ['chain', 'explorer']) fill(byId(id), el('p', { class: 'loading' }, 'Waits for the source of data.'));
  fill(byId('proof'));
  fill(byId('status'), el('p', { class: 'loading' }, 'Starting the light client…'));
}

/** Shows a source's chain once the light client has followed it. */
async function follow(source: Source, mine: number): Promise<void> {
  const status = statusView(byId('status'), source, { practise, moved: ask });
  document.documentElement.dataset['chain'] = source.kind === 'tab' ? 'practice' : networkOf(source.chainId)?.isMined ? 'mined' : 'free';
  const session = new Session(source);
  running = session;
  const [{ sections }] = await Promise.all([below(), session.start((progress) => status.progress(progress))]);
  if (mine !== turn) return;
  failures = 0;
  byId('source').dataset['trouble'] = 'none';
  if (source.kind === 'tab') practiceView(byId('source'), ask);
  else fill(byId('source'));
  const answered = status.ready(session);
  session.onHead(tellNewest);
  tellNewest(session.head);
  void route(session);
  await inTurn(sections(session), mine);
  await answered;
  await inTurn((await further()).sections(session), mine);
  if (mine !== turn) return;
  document.documentElement.dataset['ready'] = source.kind;
  // Loaded in advance: the server may be down when a visitor asks for a page.
  void pages().catch(() => {});
}

/** Shows one section in each frame, until a later start replaces the source. */
async function inTurn(shows: readonly (() => void)[], mine: number): Promise<void> {
  for (const show of shows) {
    await drawn();
    if (mine !== turn) return;
    show();
  }
}

/** Shows why there is no chain, and starts again by itself if that may help. Sections that need no server stay. */
async function failed(kind: Source['kind'], error: unknown, mine: number): Promise<void> {
  // The error of a client that cannot start does not say whether its server is down. The server's first answers show that.
  const trouble = error instanceof Trouble || kind === 'tab' ? error : await serverSource().then(() => new Trouble('unproven', reasonOf(error)), troubleOf);
  if (mine !== turn) return;
  clear();
  fill(byId('status'));
  void route(undefined);
  delete document.documentElement.dataset['chain'];
  failures += 1;
  if (kind === 'server') stopWaiting = troubleView(byId('source'), troubleOf(trouble), failures, { again: ask, practise });
  else fill(byId('source'), el('p', { class: 'banner bad', role: 'alert' }, `The practice chain cannot start: ${reasonOf(error)}.`));
  // If the server is down, the other files of the page may not load either.
  const rest = await further().catch(() => undefined);
  if (rest && byId('liar').childElementCount === 0) for (const show of rest.sections(undefined)) show();
}

theme();
takeKey();
addEventListener('hashchange', () => {
  if (takeKey()) ask();
});
holdLinkedSections();
followAddress(() => running);
demoView(byId('demo'), () => running?.source);
const tellNewest = searchView(byId('search'));
void route(undefined);
allowWorkers();
// Starts after the browser has drawn the page.
void yieldToBrowser().then(ask);
