// Shows the state of the service: the answer to the request `overview` (`overview.rs`).
import { bar } from './chart.js';
import { ago, badge, bytes, element, fill, find, number } from './dom.js';

/** A tile with a name, a badge, and lines of text. */
function tile(name, state, ...facts) {
  return element('div', { class: 'tile' }, element('dt', {}, name), element('dd', {}, state, ...facts.map((text) => element('p', { class: 'soft' }, text))));
}

/** Shows an answer to `overview`. */
export function showHealth({ version, now, chain, backends, store, database, frontEnds, lookups, decisions, methods }) {
  const { health, head, synced } = chain;
  const report = database.report;
  // Look-ups that found a key.
  const lookedUp = lookups.memory + lookups.store + lookups.database;
  find('health').replaceChildren(
    tile(
      'Chain',
      health.ready ? badge('good', synced ? 'in step' : 'ready, behind') : badge('bad', 'not ready'),
      head ? `Block ${number(head[0])}${head[1] ? `, ${ago(Math.max(0, now - head[1]))} old` : ''}` : 'No block yet',
      ...(health.reason ? [health.reason] : []),
    ),
    tile(
      'Store (Redis or Valkey)',
      store.up ? badge('good', 'answers') : badge('bad', 'away in part'),
      `Commands that failed: ${number(store.failed)}, that were refused: ${number(store.refused)}`,
      `Connections made: ${number(store.connections)}`,
    ),
    tile(
      'PostgreSQL',
      report ? badge('good', 'answers') : badge('bad', 'away'),
      ...(report ? [`${(report.micros / 1000).toFixed(1)} ms, ${bytes(report.bytes)}, version ${report.version}`, `at most ${number(report.keys)} keys`] : [database.error]),
    ),
    tile(
      'Front ends',
      badge(frontEnds ? 'good' : 'warn', `${number(frontEnds)} known`),
      `Keys looked up: ${number(lookedUp)}${lookedUp ? `, ${Math.round((100 * lookups.memory) / lookedUp)} % of them in memory` : ''}`,
      `Messages held to limits: ${number(decisions.lease + decisions.refusal)} here, ${number(decisions.store)} by the store, ${number(decisions.fallback)} while the store was away`,
      `Version ${version}`,
    ),
  );
  showBackends(backends, chain.target);
  const lines = (report?.frontEnds ?? []).map(({ name, secondsAgo }) => [element('code', {}, name), `${ago(secondsAgo)} ago`]);
  fill(find('front-ends'), 'Front ends', ['Front end', 'Last usage written'], lines, 'None.');
  ranking(find('methods'), 'Top methods', 'Method', methods.map(({ method, answered, failed }) => [method, answered + failed, failed]));
}

/** Fills the table of backends; `target` is the height of the highest known block, or null. */
function showBackends(backends, target) {
  const rows = backends.map(({ name, healthy, announced, latencyMillis, demerits, lies }) => [
    name,
    healthy ? badge('good', 'asked') : badge('bad', 'left alone'),
    announced === null ? 'unknown' : `${number(announced)}${target !== null && announced < target ? ` (${number(target - announced)} behind)` : ''}`,
    `${number(latencyMillis)} ms`,
    number(demerits),
    lies ? badge('bad', number(lies)) : '0',
  ]);
  fill(find('backends'), 'Backends', ['Backend', 'State', 'Block', 'Latency', 'Demerits', 'Lies'], rows, 'None.');
}

/** Fills a table with the 12 highest of `entries`: name, count, and how many of them failed. `what` is the title of the names. */
export function ranking(table, caption, what, entries) {
  const sorted = entries.toSorted((one, other) => other[1] - one[1]).slice(0, 12);
  const rows = sorted.map(([name, count, failed]) => {
    const text = failed ? `${number(count)} (${number(failed)} failed)` : number(count);
    return [element('code', {}, name), element('span', { class: 'counted' }, bar(count, sorted[0][1]), text)];
  });
  fill(table, caption, [what, 'Requests'], rows, 'None yet.');
}
