// Shows how honest the source of the page's answers was found to be. The source is a node, or a light client with upstreams of its own.
import { honest, type Served, silent } from '../chain/served.ts';
import type { UpstreamReport } from '../chain/session.ts';
import { grouped } from '../bytes.ts';
import { el } from '../dom.ts';

/** The kind of the source, in words. */
export const kindOf = (served: readonly Served[]): string => (served.length > 0 ? 'light client' : 'node');

/** The facts about honesty for the status line. */
export interface Honesty {
  /** The name of the page's own upstream. */
  readonly name: string;
  /** The upstreams that the server states; none if the server is a node. */
  readonly served: readonly Served[];
  /** How many lies of the server itself this page has caught. */
  readonly lies: number;
  /** Whether the server does not answer now. */
  readonly isSilent: boolean;
  /** Whether the newest block is where the chain starts, so that nothing was proven yet. */
  readonly isTrusted: boolean;
  /** Whether the chain is the tab's own, whose honesty is not a question. */
  readonly isOwn: boolean;
}

/** The badge with the number of lies. */
const caught = (lies: number) => (lies > 0 ? el('span', { class: 'badge bad' }, `${grouped(lies)} ${lies === 1 ? 'lie' : 'lies'} caught`) : '');

/** The part about the upstreams of a light client, as it describes them. */
function servedView(served: readonly Served[]): HTMLElement {
  const [good, quiet] = [honest(served), silent(served)];
  const lies = served.reduce((sum, each) => sum + each.lies, 0);
  const one = served.length === 1;
  if (quiet === served.length) return el('span', {}, el('b', { id: 'served', class: 'badge warn' }, one ? 'its only upstream does not answer' : `none of its ${served.length} upstreams answers`));
  return el('span', {}, `its ${one ? 'upstream' : 'upstreams'}: `, el('b', { id: 'served' }, `${good} of ${served.length}`), ' honest', quiet > 0 ? `, ${quiet} without an answer` : '', caught(lies));
}

/** The parts of the status line about honesty. While the newest block is the trusted start, nothing was checked yet. */
export function honestyViews({ name, served, lies, isSilent, isTrusted, isOwn }: Honesty): HTMLElement[] {
  if (isOwn && lies === 0 && !isSilent) return [];
  const own = lies === 0 && isSilent ? el('span', {}, el('b', { id: 'honest', class: 'badge warn' }, 'no answer'), ` from the ${kindOf(served)} now`)
    : lies === 0 && isTrusted ? el('span', {}, el('b', { id: 'honest' }, 'nothing to check yet'), ': the first proof comes with the next block')
    : el('span', {}, `${served.length > 0 ? 'the server’s light client' : name}: `, el('b', { id: 'honest' }, lies > 0 ? 'not honest' : 'no lie caught so far'), caught(lies));
  return served.length > 0 ? [own, servedView(served)] : [own];
}

/** A table. */
const tableOf = (label: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement =>
  el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
    el('table', {}, el('thead', {}, el('tr', {}, ...heads.map((text) => el('th', { scope: 'col' }, text)))), el('tbody', {}, ...rows)));

/** The cell with a server's name. The line may break before the port. */
const nameCell = (name: string): HTMLElement => el('th', { scope: 'row' }, ...name.split(/(?=:\d+$)/).flatMap((part) => [el('wbr'), part]));

/** Whether a server proves state, in words. */
const proves = (stateProofs: boolean | null): string => (stateProofs === null ? 'not asked yet' : stateProofs ? 'yes' : 'no');

/** The server as the page's own client sees it, and below it the upstreams that the server names. */
export function sourcesView(reports: readonly UpstreamReport[], served: readonly Served[], name: string, lies: number): HTMLElement {
  const rows = reports.map((report) => el('tr', {},
    nameCell(name),
    el('td', {}, report.announced === null ? 'nothing yet' : `block ${grouped(Number(report.announced))}`),
    el('td', {}, report.latencyMillis === null ? '–' : `${report.latencyMillis} ms`),
    el('td', {}, proves(report.stateProofs)),
    el('td', { id: 'lies' }, lies === 0 ? 'none' : grouped(lies))));
  const own = tableOf('Nodes', [served.length > 0 ? 'Light client' : 'Node', 'Says its newest is', 'Answers in', 'Proves state', 'Lies caught'], rows);
  if (served.length === 0) return own;
  const upstreams = served.map((each) => el('tr', {},
    nameCell(each.name), el('td', {}, each.resting === null ? 'answers' : `left alone: ${each.resting}`),
    el('td', {}, proves(each.stateProofs)), el('td', {}, each.lies === 0 ? 'none' : grouped(each.lies))));
  return el('div', {}, own, el('p', { class: 'description' }, 'Its upstreams, by its own word. Whatever they say, this page checks the answers again.'),
    tableOf('Upstreams of the light client', ['Upstream', 'State', 'Proves state', 'Lies caught'], upstreams));
}
