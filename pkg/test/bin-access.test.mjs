// Which callers the server of the package's program admits. The cases are those of native/server/src/access.rs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessOf } from '../bin/access.js';

const HOST = { host: ['localhost:4444'] };
const isHost = (access, host) => access.check({ host: [host] }).refused === undefined;
const page = (access, ...origin) => access.check({ ...HOST, origin });

test('the server answers for localhost, IP addresses and allowed names only', () => {
  const strict = accessOf({ cors: '*' });
  for (const good of ['localhost', 'LOCALHOST:4444', 'localhost.', 'app.localhost:1', '127.0.0.1:4444', '[::1]:4444', '[::1]', '::1', '10.0.0.7:80']) {
    assert.ok(isHost(strict, good), good);
  }
  for (const bad of ['evil.com', 'evil.com:4444', 'localhost.evil.com', '127.0.0.1.evil.com', '', 'notlocalhost', '[evil]', 'evil.com:localhost']) {
    assert.ok(!isHost(strict, bad), bad);
  }
  assert.ok(accessOf({}).check({}).refused && accessOf({}).check({ host: ['localhost', 'evil.com'] }).refused);
  const named = accessOf({ allowHost: 'node.example, b.example', host: 'a.example' });
  assert.ok(isHost(named, 'Node.Example:4444') && isHost(named, 'a.example') && !isHost(named, 'evil.com'));
  assert.ok(isHost(accessOf({ allowHost: '*' }), 'evil.com'));
});

test('only pages of localhost are of this machine', () => {
  const unnamed = accessOf({});
  for (const own of ['http://localhost', 'https://LOCALHOST:3000', 'http://app.localhost:1', 'http://127.0.0.1:8080', 'http://127.8.9.1', 'http://[::1]:5', 'http://[::ffff:127.0.0.1]:5']) {
    assert.deepEqual(page(unnamed, own), {}, own);
  }
  for (const foreign of [
    'null', '', 'file://', 'http://localhost.evil.com', 'http://127.0.0.1.nip.io', 'http://192.168.0.1', 'http://evil.com:80',
    'chrome-extension://localhost', 'http://evil.com/http://localhost', 'http://evil.com\nhttp://localhost',
  ]) {
    assert.ok(page(unnamed, foreign).origin, foreign);
  }
});

test('listed origins and own pages are trusted, others refused', () => {
  const list = accessOf({ cors: 'https://a.example , http://b.example' });
  assert.deepEqual([page(list, 'https://A.example'), page(list, 'http://localhost:3000')], [{}, {}]);
  for (const foreign of ['https://a.example.evil', 'null', '']) assert.ok(page(list, foreign).refused, foreign);
  assert.match(page(list, 'https://c.example').refused, /--cors https:\/\/c\.example$/);
  assert.doesNotMatch(page(list, 'null').refused, /--cors/);
  assert.deepEqual(page(accessOf({}), 'http://x"<script>'), { origin: 'ORIGIN' });
  assert.deepEqual(list.cors({ origin: ['https://a.example'] }).vary, 'origin');
});

test('a page that is admitted with all others is not trusted', () => {
  const all = accessOf({ cors: 'a.example, *' });
  assert.deepEqual(page(all, 'https://any.example'), { origin: 'https://any.example', admitted: true });
  assert.deepEqual(page(all, 'http://localhost:3000'), {});
  assert.equal(all.cors({ origin: ['https://any.example'] })['access-control-allow-origin'], '*');
});

test('a request with two origins is not trusted', () => {
  assert.deepEqual(page(accessOf({}), 'http://localhost', 'http://localhost'), { origin: 'ORIGIN' });
});

test('the origin null is warned of', () => {
  for (const [cors, warned] of [['null', true], ['https://a.example,NULL', true], ['https://a.example', false], ['*', false]]) {
    assert.equal(accessOf({ cors }).warning !== undefined, warned, cors);
  }
});
