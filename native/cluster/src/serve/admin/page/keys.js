// The table of keys, with a search and pages. The page reads only the keys that it shows.
import { ask } from './api.js';
import { badge, element, fill, find, moment, number } from './dom.js';

/** Keys in one page of the table. */
const SIZE = 25;
const COLUMNS = ['Key', 'State', 'Limits', 'Today', 'In all', 'Actions'];

/**
 * What is shown: the text that is searched for, where each page up to this one begins (the last entry is this page; null begins the
 * list), and where the next one begins.
 */
const view = { search: '', starts: [null], next: null };
/** What the buttons of a key do; see `prepare`. */
let actions = {};

/**
 * Sets the functions of the buttons of a key: {usage, change, revoke}, each is called with the key. `failed` is called with the error
 * when a page cannot be read.
 */
export function prepare(given, failed) {
  actions = given;
  const thenShow = (work) => () => { work(); show().catch(failed); };
  find('search').addEventListener('submit', (event) => {
    event.preventDefault();
    thenShow(() => Object.assign(view, { search: find('text').value, starts: [null] }))();
  });
  find('next').addEventListener('click', thenShow(() => view.starts.push(view.next)));
  find('back').addEventListener('click', thenShow(() => view.starts.pop()));
}

/** Shows the first page of a search. */
export function search(text) {
  find('text').value = text;
  Object.assign(view, { search: text, starts: [null] });
  return show();
}

/** Number of calls of `show`. */
let calls = 0;

/** Reads this page of the table and shows it. */
export async function show() {
  calls += 1;
  const call = calls;
  const { keys, next } = await ask('keys/list', { search: view.search, after: view.starts.at(-1), most: SIZE });
  // A later call has begun, whose answer is the one to show.
  if (call !== calls) return;
  view.next = next;
  fill(find('keys'), 'Keys', COLUMNS, keys.map(row), view.search ? 'No name or id begins so.' : 'There are no keys yet.');
  find('back').disabled = view.starts.length < 2;
  find('next').disabled = next === null;
  find('place').textContent = `Page ${number(view.starts.length)}`;
}

/** The cells of a key. */
function row(key) {
  const button = (text, action, kind = '') =>
    element('button', { type: 'button', class: kind, 'aria-label': `${text} key ${key.id}`, onclick: () => action(key) }, text);
  const change = key.revoked ? [] : [button('Change', actions.change), button('Revoke', actions.revoke, 'danger')];
  return [
    element('span', { class: 'name' }, element('bdi', {}, key.name || '(no name)'), element('code', {}, key.id)),
    state(key),
    limits(key.rules),
    number(key.usage.today),
    `${number(key.usage.requests)}${key.usage.refused ? `, ${number(key.usage.refused)} refused` : ''}`,
    element('span', { class: 'buttons' }, button('Usage', actions.usage), ...change),
  ];
}

/** Whether a key is valid, as a badge. */
function state({ revoked, rules: { expires } }) {
  if (revoked) return element('span', {}, badge('bad', 'revoked'), ` ${moment(revoked)}`);
  if (!expires) return badge('good', 'valid');
  const over = expires * 1000 < Date.now();
  return element('span', {}, badge(over ? 'warn' : 'good', over ? 'expired' : 'valid until'), ` ${moment(expires)}`);
}

/** The limits of a key in words. */
function limits(rules) {
  const list = (name, entries) => (entries.length ? [`${name}: ${entries.slice(0, 3).join(', ')}${entries.length > 3 ? ` and ${entries.length - 3} more` : ''}`] : []);
  const parts = [
    ...(rules.perSecond ? [`${number(rules.perSecond)} a second, ${number(rules.burst ?? rules.perSecond * 2)} at once`] : []),
    ...(rules.perDay ? [`${number(rules.perDay)} a day`] : []),
    ...list('methods', rules.methods),
    ...list('contracts', rules.contracts),
    ...list('origins', rules.origins),
    ...list('addresses', rules.addresses),
    ...(rules.stateOverride ? ['may override state'] : []),
    ...(rules.debug ? ['debug_ methods'] : []),
    ...(rules.operator ? ['operator'] : []),
  ];
  return parts.length ? element('ul', { class: 'limits' }, ...parts.map((text) => element('li', {}, text))) : 'no limits';
}
