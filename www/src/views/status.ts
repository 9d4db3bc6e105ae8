// How far the light client is, what it trusts, and whom it asks.
import type { SyncProgress } from '../../../pkg/index.js';
import type { Session, UpstreamReport } from '../chain/session.ts';
import { networkName, progressOf, type Source } from '../chain/source.ts';
import { grouped, quantity } from '../bytes.ts';
import { el, fill, put } from '../dom.ts';

/** Milliseconds without any progress after which the page says so. */
const PATIENCE = 12_000;

/** Milliseconds between two looks at the state of the upstream. */
const LOOK = 5_000;

export interface StatusView {
  progress(progress: SyncProgress): void;
  ready(session: Session): void;
}

const stat = (name: string, ...value: (Node | string)[]) => el('div', { class: 'stat' }, el('dt', {}, name), el('dd', {}, ...value));

const LEVELS: readonly (readonly [string, string, string])[] = [
  ['verified', 'good', 'The chain commits to it, and the proof was checked here.'],
  ['unproven', 'warn', 'No proof is possible or given: that something does not exist anywhere, for example. Only said when you allow it.'],
  ['refused', 'bad', 'The proof is missing or wrong. You get an error and never the claim.'],
];

function levels(): HTMLElement {
  return el('details', { class: 'levels' }, el('summary', {}, 'What do the labels mean?'),
    el('dl', {}, ...LEVELS.flatMap(([name, kind, tells]) => [el('dt', {}, el('span', { class: `badge ${kind}` }, name)), el('dd', {}, tells)]),
      el('dt', {}, el('span', { class: 'badge' }, 'depth')),
      el('dd', {}, 'How many blocks stand on top. Each adds work that a liar would have to redo; exchanges wait for a dozen or more.')));
}

function upstreams(reports: readonly UpstreamReport[], source: Source): HTMLElement {
  const rows = reports.map((report) => el('tr', {},
    el('th', { scope: 'row' }, source.name),
    el('td', {}, report.announced === null ? 'nothing yet' : `block ${grouped(Number(report.announced))}`),
    el('td', {}, report.latencyMillis === null ? '–' : `${report.latencyMillis} ms`),
    el('td', {}, report.stateProofs === null ? 'not asked yet' : report.stateProofs ? 'yes' : 'no'),
    el('td', {}, report.lies === 0 ? 'none' : grouped(report.lies))));
  const heads = ['Upstream', 'Says its newest is', 'Answers in', 'Proves state', 'Lies caught'].map((text) => el('th', { scope: 'col' }, text));
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Upstreams' }, el('table', {}, el('thead', {}, el('tr', {}, ...heads)), el('tbody', {}, ...rows)));
}

export function statusView(root: HTMLElement, source: Source, change: HTMLElement | undefined): StatusView {
  const bar = el('progress', { max: '1', value: '0', 'aria-label': 'Blocks verified' });
  const note = el('p', { class: 'small' }, `Asking ${source.name} for headers…`);
  const stats = el('dl', { class: 'stats' });
  const below = el('div');
  fill(root, el('div', { class: 'card' }, stats, bar, note, below));
  put(below, change);
  // Silence is shown, too: a node may be down, or send headers that prove nothing.
  const waiting = setTimeout(() => {
    note.textContent = `Still no proven header from ${source.name}: it does not answer, or what it sends proves nothing.`;
  }, PATIENCE);

  const table = el('div');
  /** What is shown now: the same again would close nothing and change nothing, but screen readers would read it again. */
  let shown = '';

  async function refresh(session: Session): Promise<void> {
    if (session.isClosed) return;
    const [verification, reports] = await Promise.all([
      session.verification(quantity(session.head)),
      session.request('rootlight_upstreams') as Promise<UpstreamReport[]>,
    ]);
    const silent = reports.find(({ resting }) => resting !== null)?.resting ?? null;
    const now = JSON.stringify([session.head, verification?.level, reports.map(({ announced, stateProofs, lies }) => [announced, stateProofs, lies]), silent]);
    if (now === shown || session.isClosed) return;
    shown = now;
    fill(stats,
      stat('Network', networkName(source.chainId)),
      stat('Newest block proven here', el('span', { id: 'head' }, `#${grouped(session.head)}`)),
      stat('Level', el('span', { class: 'badge good', id: 'level' }, verification?.level ?? 'verified')),
      stat('Asked', source.name));
    bar.value = 1;
    fill(table, upstreams(reports, source));
    root.dataset['node'] = silent === null ? 'answers' : 'silent';
    note.textContent = silent === null
      ? `Every header from the start up to the newest is checked. Trusted without proof: ${source.trusts}.`
      : `${source.name} gives nothing new for now: ${silent}. What was proven stays proven.`;
  }

  return {
    progress(progress) {
      clearTimeout(waiting);
      bar.value = progressOf(progress);
      const left = progress.secondsLeft === undefined ? '' : `, about ${grouped(Math.ceil(progress.secondsLeft))} s left`;
      note.textContent = `Block ${grouped(progress.currentBlock)} of ${grouped(progress.highestBlock)} checked${left}.`;
    },
    ready(session) {
      session.onHead(() => void refresh(session).catch(() => {}));
      clearTimeout(waiting);
      fill(below, el('details', { class: 'levels' }, el('summary', {}, 'The upstream, as the client sees it'), table), levels(), change);
      void refresh(session).catch(() => {});
      const clock = setInterval(() => {
        if (session.isClosed) clearInterval(clock);
        else void refresh(session).catch(() => {});
      }, LOOK);
    },
  };
}
