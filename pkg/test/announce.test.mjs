// The announcement of a provider to other programs of its page (EIP-6963), with a window made for the test.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { announce } from '../index.js';

const INFO = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name: 'Proven', icon: 'data:image/svg+xml,<svg/>', rdns: 'org.example.proven' };

const provider = Object.freeze({ request: async () => null });

/** A window for one test. */
function window(t) {
  globalThis.window = new EventTarget();
  t.after(() => delete globalThis.window);
  const told = [];
  globalThis.window.addEventListener('eip6963:announceProvider', ({ detail }) => told.push(detail));
  return told;
}

const request = () => globalThis.window.dispatchEvent(new Event('eip6963:requestProvider'));

test('a provider is announced at once and on request, until that is stopped', (t) => {
  const told = window(t);
  const stop = announce(provider, INFO);
  request();
  assert.equal(told.length, 2);
  assert.deepEqual(told[0].info, INFO);
  assert.equal(told[0].provider, provider);
  assert.ok(Object.isFrozen(told[0]) && Object.isFrozen(told[0].info));
  stop();
  request();
  assert.equal(told.length, 2);
});

test('an announcement without an id gets a random one', (t) => {
  const told = window(t);
  const { uuid, ...rest } = INFO;
  announce(provider, rest);
  announce(provider, rest);
  assert.match(told[0].info.uuid, /^[\da-f-]{36}$/);
  assert.notEqual(told[0].info.uuid, told[1].info.uuid);
});

test('the random id is one of version 4 in pages without a function for it too', (t) => {
  const told = window(t);
  const own = Object.getOwnPropertyDescriptor(Crypto.prototype, 'randomUUID');
  Object.defineProperty(Crypto.prototype, 'randomUUID', { ...own, value: undefined });
  t.after(() => Object.defineProperty(Crypto.prototype, 'randomUUID', own));
  const { uuid, ...rest } = INFO;
  announce(provider, rest);
  assert.match(told[0].info.uuid, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

test('a wrong description is named', (t) => {
  window(t);
  for (const [wrong, named] of [[{ uuid: 'one' }, /^uuid/], [{ name: '' }, /^name/], [{ icon: 'https://site.example/icon' }, /^icon/], [{ rdns: 'example' }, /^rdns/]]) {
    assert.throws(() => announce(provider, { ...INFO, ...wrong }), { name: 'TypeError', message: named });
  }
});

test('only a page can announce', () => {
  assert.throws(() => announce(provider, INFO), /only a page/);
});
