// Dialogs: a new key, other limits, a revocation.
import { ask } from './api.js';
import { element, find } from './dom.js';

const FIELDS = [
  ['name', 'Name', 'text', 'What you call the key'],
  ['perSecond', 'Requests per second', 'number', 'No limit'],
  ['burst', 'Requests at once', 'number', 'Those of two seconds'],
  ['perDay', 'Requests per day (UTC)', 'number', 'No limit'],
  ['methods', 'Methods', 'text', 'All; or eth_*, net_version'],
  ['contracts', 'Contracts', 'text', 'All; or addresses with commas'],
  ['origins', 'Origins of web pages', 'text', 'All; or origins with commas'],
  ['addresses', 'Addresses of clients', 'text', 'All; or 10.0.0.0/8'],
];
const SWITCHES = [
  ['stateOverride', 'eth_call may override state'],
  ['debug', 'The hosted profile has the debug_ methods'],
  ['operator', 'A key of the operator, who may ban addresses (sco_*)'],
];

/** Opens the dialog with a form; `send` gets the form, and its error is shown in it. */
function open(title, contents, button, kind, send) {
  const dialog = find('dialog');
  const told = element('p', { class: 'note bad', role: 'alert', hidden: true });
  const submit = element('button', { type: 'submit', class: kind }, button);
  const form = element(
    'form',
    {},
    element('h2', { id: 'dialog-title' }, title),
    ...contents,
    told,
    element('div', { class: 'row end' }, element('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), submit),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await send(form);
      dialog.close();
    } catch (error) {
      told.textContent = error.message;
      told.hidden = false;
    } finally {
      submit.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}

function fields(values) {
  const line = ([name, label, type, hint]) => {
    const input = element('input', { id: `f-${name}`, name, type, placeholder: hint, autocomplete: 'off', ...(type === 'number' ? { min: 0, step: 1 } : {}) });
    input.value = values[name] ?? '';
    return element('div', { class: 'field' }, element('label', { for: `f-${name}` }, label), input);
  };
  const end = element('input', { id: 'f-expires', name: 'expires', type: 'datetime-local' });
  end.value = values.expires ? new Date(values.expires * 1000).toISOString().slice(0, 16) : '';
  const toggle = ([name, label]) => {
    const box = element('input', { id: `f-${name}`, name, type: 'checkbox' });
    box.checked = values[name] ?? false;
    return element('label', { class: 'check', for: `f-${name}` }, box, label);
  };
  return [
    element('div', { class: 'fields' }, ...FIELDS.map(line), element('div', { class: 'field' }, element('label', { for: 'f-expires' }, 'Ends at (UTC), or never'), end)),
    ...SWITCHES.map(toggle),
  ];
}

/** What differs between the form and a key. An empty number is no limit. */
function change(form, old) {
  const read = {};
  for (const [name, , type] of FIELDS) {
    const text = form.elements[name].value.trim();
    read[name] = type === 'number' ? Number(text || 0) : text;
  }
  for (const [name] of SWITCHES) read[name] = form.elements[name].checked;
  const end = form.elements.expires.value;
  read.expires = end ? Math.floor(Date.parse(`${end}Z`) / 1000) : 0;
  const before = { expires: old.expires ?? 0, stateOverride: old.stateOverride ?? false, debug: old.debug ?? false, operator: old.operator ?? false };
  for (const [name, , type] of FIELDS) before[name] = old[name] ?? (type === 'number' ? 0 : '');
  // The form has minutes, the key seconds.
  before.expires -= before.expires % 60;
  return Object.fromEntries(Object.entries(read).filter(([name, value]) => value !== before[name]));
}

/** The name and limits of a key as the form holds them. */
const flat = ({ name, rules }) => ({ ...rules, name, ...Object.fromEntries(['methods', 'contracts', 'origins', 'addresses'].map((list) => [list, rules[list].join(', ')])) });

/** Makes a key; `made` gets {id, key}. */
export function createKey(made) {
  open('New key', fields({}), 'Make the key', 'main', async (form) => made(await ask('keys/create', { change: change(form, {}) })));
}

/** Changes a key. */
export function changeKey(key, done) {
  const old = flat(key);
  open(`Limits of ${key.id}`, fields(old), 'Change', 'main', async (form) => done(await ask('keys/limit', { id: key.id, change: change(form, old) })));
}

/** Revokes a key, if that is confirmed. */
export function revokeKey(key, done) {
  const text = element('p', {}, 'Revoke ', element('bdi', {}, key.name || '(no name)'), ' (', element('code', {}, key.id), ')? Its requests are refused within a second, and its open WebSockets are closed. This cannot be undone.');
  open('Revoke a key', [text], 'Revoke for good', 'danger', async () => done(await ask('keys/revoke', { id: key.id })));
}
