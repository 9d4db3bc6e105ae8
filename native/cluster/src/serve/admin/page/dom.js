// Makes elements, and formats numbers, sizes and times. A name of a key may contain markup of an attacker, so text becomes text
// nodes only.

/**
 * An element with properties, and children that are elements or text. A property is `class`, a listener (`on` and the event), or
 * an attribute; `true` sets it without a value, `false` leaves it out.
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'class') made.className = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

/** The element of the page with this id. */
export const find = (id) => document.getElementById(id);

/** A whole number with separators. */
export const number = (value) => Number(value).toLocaleString('en');

/** A size in bytes, with a unit. */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
  return `${(value / 1024 ** step).toFixed(step ? 1 : 0)} ${units[step]}`;
}

/** A moment (seconds since 1970) as date and time in UTC. */
export const moment = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');

/** A day (days since 1970) as a date. */
export const date = (day) => new Date(day * 86_400_000).toISOString().slice(0, 10);

/** A duration in seconds, in its largest unit. */
export function ago(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/**
 * Fills a table: `columns` are texts, `rows` lists of texts and elements, the first of which names the row. Without rows the
 * table shows the text `empty`.
 */
export function fill(table, caption, columns, rows, empty) {
  const head = element('tr', {}, ...columns.map((text) => element('th', { scope: 'col' }, text)));
  const cell = (content, at) => element(at ? 'td' : 'th', at ? { 'data-label': columns[at] } : { scope: 'row' }, content);
  const lines = rows.map((row) => element('tr', {}, ...row.map(cell)));
  if (!lines.length) lines.push(element('tr', {}, element('td', { colspan: columns.length, class: 'soft' }, empty)));
  table.replaceChildren(
    element('caption', { class: 'hidden' }, caption),
    element('thead', {}, head),
    element('tbody', {}, ...lines),
  );
}

/** A word with a colour for its meaning: `kind` is good, warn or bad. */
export const badge = (kind, text) => element('span', { class: `badge ${kind}` }, text);
