// Starts the page: a source of data, a light client that does not trust it, and the sections that show both.
import { Session } from './chain/session.ts';
import { serverSource, type Source, tabSource } from './chain/source.ts';
import { action, breath, byId, el, fill } from './dom.ts';
import { holdLinkedSections } from './links.ts';
import { theme } from './theme.ts';
import { chainView } from './views/chain.ts';
import { explorerView } from './views/explorer.ts';
import { playgroundView } from './views/playground.ts';
import { proofView } from './views/proof.ts';
import { statusView } from './views/status.ts';
import { tamperView } from './views/tamper.ts';
import { reasonOf } from './words.ts';
import { allowWorkers } from './workers.ts';

type Kind = Source['kind'];

/** The running client; a change of the source replaces it. */
let running: Session | undefined;

/** The button that changes to the other source, if there is another one. */
function changer(source: Source, hasServer: boolean): HTMLElement | undefined {
  if (source.kind === 'server') return action('Use a chain in this tab instead', () => begin('tab'));
  return hasServer ? action(`Use ${location.host} instead`, () => begin('server')) : undefined;
}

let server: Promise<Source | undefined> | undefined;

/** How many times a source was chosen: a start that was overtaken by a later one shows nothing. */
let turn = 0;

async function begin(kind: Kind): Promise<void> {
  turn += 1;
  const mine = turn;
  running?.close();
  const root = byId('status');
  fill(root, el('p', { class: 'loading' }, 'Starting the light client…'));
  try {
    server ??= serverSource();
    const given = await server;
    const source = kind === 'server' && given ? given : await tabSource();
    if (mine !== turn) return source.chain?.close();
    const status = statusView(root, source, changer(source, given !== undefined));
    const session = new Session(source);
    running = session;
    await session.start((progress) => status.progress(progress));
    if (mine !== turn) return;
    status.ready(session);
    for (const show of sections(session)) {
      await breath();
      if (mine !== turn) return;
      show();
    }
    document.documentElement.dataset['ready'] = source.kind;
  } catch (error) {
    if (mine === turn) failed(root, error);
  }
}

/** Shows why there is no light client; what the page offers instead stays. */
function failed(root: HTMLElement, error: unknown): void {
  root.querySelector('.loading')?.remove();
  root.append(el('p', { class: 'note bad', role: 'alert' }, `The light client cannot start: ${reasonOf(error)}.`));
}

/** What shows each section of the page, in their order. */
function sections(session: Session): (() => void)[] {
  return [
    () => {
      const proof = proofView(byId('proof'), session);
      chainView(byId('chain'), session, proof.show);
    },
    () => explorerView(byId('explorer'), session),
    () => tamperView(byId('liar'), session),
    () => playgroundView(byId('playground'), session),
  ];
}

theme();
holdLinkedSections();
allowWorkers();
// The browser draws the page first.
void breath().then(() => begin('server'));
