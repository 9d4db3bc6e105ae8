// The admin page of a front end: signing in and out, reading the health regularly, and the usage of a key or of all keys.
import { ask, signIn, signOut } from './api.js';
import { chart, everyDay } from './chart.js';
import { date, element, fill, find, number } from './dom.js';
import { changeKey, createKey, revokeKey } from './forms.js';
import { ranking, showHealth } from './health.js';
import { prepare, search, show } from './keys.js';

/** Milliseconds between two requests for the health. */
const HEALTH_INTERVAL = 5_000;

/** The timer of the next request for the health. */
let timer;
/** The key whose usage is shown; `null` for all. */
let shown = null;

/** Shows a text on the form for signing in, which screen readers say. */
const status = (text) => { find('status').textContent = text; };

/** Shows an error; `null` hides the last one. */
function problem(error) {
  find('problem').hidden = !error;
  find('problem').textContent = error?.message ?? '';
}

/** Reads and shows the health. */
async function health() {
  showHealth(await ask('overview'));
  // Not a status: a screen reader would say it every five seconds.
  find('read').textContent = `Read at ${new Date().toLocaleTimeString('en-GB')}`;
}

/** Reads and shows the usage of `shown`. */
async function usage() {
  const count = Number(find('days').value);
  const key = shown;
  const answer = await ask('usage', { ...(key ? { id: key.id } : {}), days: count });
  // Another key was chosen meanwhile.
  if (key !== shown) return;
  const days = everyDay(answer.days, Math.floor(Date.now() / 86_400_000), count);
  find('chart').replaceChildren(chart(days, find('chart').clientWidth), legend());
  const rows = days.toReversed().map(({ day, requests, weight, refused }) => [date(day), number(requests), number(weight), number(refused)]);
  fill(find('usage-table'), 'Usage by day', ['Day (UTC)', 'Requests', 'Weight', 'Refused messages'], rows, 'None.');
  if (answer.classes) ranking(find('classes'), 'Top namespaces', 'Namespace', Object.entries(answer.classes));
  find('usage-of').textContent = key ? `${key.name || '(no name)'} (${key.id})` : 'all keys';
  find('usage-all').hidden = !key;
}

const legend = () =>
  element('p', { class: 'legend', 'aria-hidden': 'true' }, element('span', { class: 'used' }, 'requests'), element('span', { class: 'refused' }, 'messages that a limit refused'));

/** Shows the text of a new key, which no later answer contains. */
function made({ id, key }) {
  const copy = element('button', { type: 'button', onclick: () => navigator.clipboard.writeText(key).then(() => { copy.textContent = 'Copied'; }, () => {}) }, 'Copy');
  const close = element('button', { type: 'button', onclick: () => { find('made').hidden = true; find('made').replaceChildren(); } }, 'I have it');
  find('made').replaceChildren(
    element('p', {}, 'The new key, shown this once:'),
    element('p', {}, element('code', { id: 'new-key-text', class: 'secret' }, key)),
    element('div', { class: 'row' }, copy, close),
  );
  find('made').hidden = false;
  return search(id);
}

/** Wraps an action of the operator: the returned function shows its error, or hides the last one. */
const attempt = (work) => (...values) => Promise.resolve(work(...values)).then(() => problem(null), problem);

/** Whether the last request for the health failed. */
let failing = false;

/** Reads the health, and shows a failure until a later request succeeds. Errors of actions stay visible. */
async function refresh() {
  try {
    await health();
    if (failing) problem(null);
    failing = false;
  } catch (error) {
    failing = true;
    problem(error);
  }
}

/** Reads the health if the page is visible, and sets the timer for the next time. */
async function tick() {
  clearTimeout(timer);
  if (!document.hidden) await refresh();
  if (!find('signed-in').hidden) timer = setTimeout(tick, HEALTH_INTERVAL);
}

/** Signs out, and shows why if the token was refused. */
function leave(error) {
  clearTimeout(timer);
  signOut();
  find('dialog').close();
  find('made').replaceChildren();
  find('read').textContent = '';
  for (const id of ['signed-in', 'leave', 'made']) find(id).hidden = true;
  find('enter').hidden = false;
  status(error?.message ?? 'Signed out');
  find('token').focus();
}

find('enter').addEventListener('submit', async (event) => {
  event.preventDefault();
  signIn(find('token').value.trim(), leave);
  find('token').value = '';
  try {
    await health();
  } catch (error) {
    status(error.message);
    return;
  }
  find('enter').hidden = true;
  find('signed-in').hidden = false;
  find('leave').hidden = false;
  status('');
  find('main').focus();
  timer = setTimeout(tick, HEALTH_INTERVAL);
  await attempt(() => Promise.all([usage(), show()]))();
});

find('leave').addEventListener('click', () => leave());
find('days').addEventListener('change', attempt(usage));
find('usage-all').addEventListener('click', attempt(() => { shown = null; return usage(); }));
find('new-key').addEventListener('click', () => createKey(made));
prepare(
  {
    usage: attempt(async (key) => {
      shown = key;
      await usage();
      find('usage-title').scrollIntoView();
    }),
    change: (key) => changeKey(key, show),
    revoke: (key) => revokeKey(key, show),
  },
  problem,
);
document.addEventListener('visibilitychange', () => { if (!document.hidden && !find('signed-in').hidden) tick(); });
// Tests wait for this attribute.
document.documentElement.dataset.ready = '';
