// The dialogs in which the operator makes a key, changes one, or revokes one.
import { ask } from './api.js';
import { element, find } from './dom.js';

/** Fields of the form: property of a key, label, type, and the hint in an empty field. */
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
/** Rights of a key: property and label. */
const SWITCHES = [
  ['stateOverride', 'eth_call may override state'],
  ['debug', 'The hosted profile has the debug_ methods'],
  ['operator', 'A key of the operator, who may ban addresses (sco_*)'],
];

/**
 * Opens the dialog with a form. `button` is the text of its button and `kind` the button's class; `send` is called with the form, and
 * the dialog shows its error or closes.
 */
function open(title, contents, button, kind, send) {
  const dialog = find('dialog');
  const problem = element('p', { class: 'note bad', role: 'alert', hidden: true });
  const submit = element('button', { type: 'submit', class: kind }, button);
  const form = element(
    'form',
    {},
    element('h2', { id: 'dialog-title' }, title),
    ...contents,
    problem,
    element('div', { class: 'row end' }, element('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), submit),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await send(form);
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    } finally {
      submit.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}

/** The fields of the form, with the values of a key. */
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

/** The values of the form that differ from those of a key. An empty number becomes 0, which is no limit. */
function changedValues(form, old) {
  const entered = {};
  for (const [name, , type] of FIELDS) {
    const text = form.elements[name].value.trim();
    entered[name] = type === 'number' ? Number(text || 0) : text;
  }
  for (const [name] of SWITCHES) entered[name] = form.elements[name].checked;
  const end = form.elements.expires.value;
  entered.expires = end ? Math.floor(Date.parse(`${end}Z`) / 1000) : 0;
  const before = { expires: old.expires ?? 0, stateOverride: old.stateOverride ?? false, debug: old.debug ?? false, operator: old.operator ?? false };
  for (const [name, , type] of FIELDS) before[name] = old[name] ?? (type === 'number' ? 0 : '');
  // The form has minutes, the key seconds.
  before.expires -= before.expires % 60;
  return Object.fromEntries(Object.entries(entered).filter(([name, value]) => value !== before[name]));
}

/** The name and limits of a key as the form shows them: lists are texts with commas. */
const formValues = ({ name, rules }) => ({ ...rules, name, ...Object.fromEntries(['methods', 'contracts', 'origins', 'addresses'].map((list) => [list, rules[list].join(', ')])) });

/** Opens the dialog that makes a key; `made` is called with {id, key}. */
export function createKey(made) {
  open('New key', fields({}), 'Make the key', 'main', async (form) => made(await ask('keys/create', { change: changedValues(form, {}) })));
}

/** Opens the dialog that changes a key; `done` is called afterwards. */
export function changeKey(key, done) {
  const old = formValues(key);
  open(`Limits of ${key.id}`, fields(old), 'Change', 'main', async (form) => done(await ask('keys/limit', { id: key.id, change: changedValues(form, old) })));
}

/** Opens the dialog that revokes a key; `done` is called afterwards. */
export function revokeKey(key, done) {
  const text = element('p', {}, 'Revoke ', element('bdi', {}, key.name || '(no name)'), ' (', element('code', {}, key.id), ')? Its requests are refused within a second, and its open WebSockets are closed. This cannot be undone.');
  open('Revoke a key', [text], 'Revoke for good', 'danger', async () => done(await ask('keys/revoke', { id: key.id })));
}
