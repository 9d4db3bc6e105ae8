// The admin page of a front end: signing in, what is shown when, and how often.
import { ask, signIn, signOut } from './api.js';
import { chart, everyDay } from './chart.js';
import { date, element, fill, find, number } from './dom.js';
import { changeKey, createKey, revokeKey } from './forms.js';
import { ranking, showHealth } from './health.js';
import { prepare, search, show } from './keys.js';

/** Milliseconds between two looks at the health. */
const EVERY = 5_000;

let timer;
/** The key whose usage is shown; `null` for all. */
let shown = null;

const status = (text) => { find('status').textContent = text; };

function problem(error) {
  find('problem').hidden = !error;
  find('problem').textContent = error?.message ?? '';
}

async function health() {
  showHealth(await ask('overview'));
  // Not a status: a screen reader would say it every five seconds.
  find('read').textContent = `Read at ${new Date().toLocaleTimeString('en-GB')}`;
}

async function usage() {
  const count = Number(find('days').value);
  const asked = shown;
  const told = await ask('usage', { ...(asked ? { id: asked.id } : {}), days: count });
  // Another key was chosen meanwhile.
  if (asked !== shown) return;
  const days = everyDay(told.days, Math.floor(Date.now() / 86_400_000), count);
  find('chart').replaceChildren(chart(days, find('chart').clientWidth), legend());
  const rows = days.toReversed().map(({ day, requests, weight, refused }) => [date(day), number(requests), number(weight), number(refused)]);
  fill(find('usage-table'), 'Usage by day', ['Day (UTC)', 'Requests', 'Weight', 'Refused messages'], rows, 'None.');
  if (told.classes) ranking(find('classes'), 'Top namespaces', 'Namespace', Object.entries(told.classes));
  find('usage-of').textContent = asked ? `${asked.name || '(no name)'} (${asked.id})` : 'all keys';
  find('usage-all').hidden = !asked;
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

/** Does something that a person asked for. */
const attempt = (work) => (...values) => Promise.resolve(work(...values)).then(() => problem(null), problem);

let failing = false;

/** Reads the health; a failure is told until it is over. Other problems stay. */
async function look() {
  try {
    await health();
    if (failing) problem(null);
    failing = false;
  } catch (error) {
    failing = true;
    problem(error);
  }
}

async function tick() {
  clearTimeout(timer);
  if (!document.hidden) await look();
  if (!find('signed-in').hidden) timer = setTimeout(tick, EVERY);
}

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
  timer = setTimeout(tick, EVERY);
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
document.documentElement.dataset.ready = '';
