// What the store in a directory replaces and removes: only files of this package. Needs no module.
import assert from 'node:assert/strict';
import { existsSync, lstatSync, lutimesSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { MAX_PAGE_BYTES } from '../directory.js';
import { pagesIn } from '../store.js';

let folder;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

const OWN = 'rootlight-v1-mainnet-newest';
const inOwn = (...names) => join(folder, OWN, ...names);

/** Makes a directory with files. */
function make(name, files = { '0.page': 'page' }) {
  mkdirSync(join(folder, name));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, name, file), text);
}

/** Writes a page as a client of mainnet, and returns what it reported. */
async function write(...pages) {
  const told = [];
  const client = pagesIn(folder, { network: 'mainnet' }, { onError: ({ message }) => told.push(message) });
  await client.save(0, pages.length > 0 ? pages : [Uint8Array.of(1)]);
  await client.close();
  return told;
}

test('stores of later versions, and what only begins like a store, are left alone', async () => {
  const others = [
    'rootlight-v2-mainnet-newest', 'rootlight-v10-mainnet-newest', `rootlight-v3-mainnet-0x${'ab'.repeat(32)}`, 'rootlight-v0-notes',
    'rootlight-v0-mainnet-newest.bak', 'my-rootlight-v0-mainnet-newest', 'rootlight-v0-mainnet-0x12', 'rootlight-v00x-mainnet-newest', 'rootlight-v0-newest',
  ];
  for (const name of others) make(name);
  assert.deepEqual(await write(), []);
  assert.deepEqual(readdirSync(folder).sort(), [...others, OWN].sort());
  for (const name of others) assert.equal(readFileSync(join(folder, name, '0.page'), 'utf8'), 'page', name);
});

test('of the store of an earlier version only its own files are removed', async () => {
  make('rootlight-v0-mainnet-newest', { '0.page': 'page', '1.page.new': 'half', writer: '' });
  make('rootlight-v0-testnet-newest', { '0.page': 'page', 'notes.txt': 'mine' });
  utimesSync(join(folder, 'rootlight-v0-mainnet-newest', 'writer'), 0, 0);
  await write();
  assert.deepEqual(readdirSync(folder).sort(), ['rootlight-v0-testnet-newest', OWN]);
  assert.deepEqual(readdirSync(join(folder, 'rootlight-v0-testnet-newest')), ['notes.txt']);
});

test('the store of an earlier version that a client uses is left alone', async () => {
  const owners = { used: [process.pid, 'another'], thread: [process.pid, hostname()], free: [2 ** 30, hostname()] };
  for (const [name, owner] of Object.entries(owners)) make(`rootlight-v0-${name}-newest`, { '0.page': 'page', writer: JSON.stringify([...owner, 'token']) });
  await write();
  assert.deepEqual(readdirSync(folder).sort(), ['rootlight-v0-thread-newest', 'rootlight-v0-used-newest', OWN]);
});

test('the store of an earlier version with a lock from the future is removed once the lock is old', async () => {
  make('rootlight-v0-mainnet-newest', { '0.page': 'page', writer: JSON.stringify([2 ** 30, 'another', 'token']) });
  const writer = join(folder, 'rootlight-v0-mainnet-newest', 'writer');
  const ahead = Date.now() / 1_000 + 400_000_000;
  utimesSync(writer, ahead, ahead);
  await write();
  assert.ok(statSync(writer).mtimeMs <= Date.now());
  utimesSync(writer, 0, 0);
  await write();
  assert.deepEqual(readdirSync(folder), [OWN]);
});

test('a link from the future in place of the lock is not followed either', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'rootlight-outside-'));
  const victim = join(outside, 'victim');
  writeFileSync(victim, 'mine');
  utimesSync(victim, 1_000, 1_000);
  make(OWN, {});
  symlinkSync(victim, inOwn('writer'));
  const ahead = Date.now() / 1_000 + 400_000_000;
  lutimesSync(inOwn('writer'), ahead, ahead);
  assert.deepEqual(await write(), []);
  assert.ok(lstatSync(inOwn('writer')).mtimeMs <= Date.now());
  assert.deepEqual([statSync(victim).mtimeMs, readFileSync(victim, 'utf8')], [1_000_000, 'mine']);
  rmSync(outside, { recursive: true });
});

test('no symbolic link is followed', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'rootlight-outside-'));
  const victim = join(outside, '0.page');
  writeFileSync(victim, 'mine');
  make(OWN, {});
  // A page, the names under which one is written, the lock, and a whole store of an earlier version.
  for (const name of ['0.page', '0.page.new', '1.page.new', 'writer']) symlinkSync(victim, inOwn(name));
  symlinkSync(outside, join(folder, 'rootlight-v0-mainnet-newest'));
  // A link in place of the lock is held by nobody once it is old.
  lutimesSync(inOwn('writer'), 0, 0);
  const told = [];
  const client = pagesIn(folder, { network: 'mainnet' }, { onError: ({ message }) => told.push(message) });
  assert.equal(await client.read(0), undefined, 'a link is not a page');
  await client.save(0, [Uint8Array.of(1), Uint8Array.of(2)]);
  await client.close();
  assert.deepEqual(told, []);
  assert.deepEqual([readFileSync(victim, 'utf8'), readdirSync(outside)], ['mine', ['0.page']]);
  assert.deepEqual(readdirSync(inOwn()).sort(), ['0.page', '1.page']);
  assert.equal(readFileSync(inOwn('0.page'))[0], 1);
  assert.ok(existsSync(join(folder, 'rootlight-v0-mainnet-newest')));
  rmSync(outside, { recursive: true });
});

test('a file that is longer than any page is not read, and replaced', async () => {
  make(OWN, { '0.page': '', '1.page': '', writer: '' });
  truncateSync(inOwn('0.page'), MAX_PAGE_BYTES);
  // Longer than Node.js can read.
  for (const name of ['1.page', 'writer']) truncateSync(inOwn(name), 2 ** 40);
  utimesSync(inOwn('writer'), 0, 0);
  const told = [];
  const client = pagesIn(folder, { network: 'mainnet' }, { onError: ({ message }) => told.push(message) });
  assert.equal((await client.read(0))?.length, MAX_PAGE_BYTES);
  assert.equal(await client.read(1), undefined);
  await client.save(1, [Uint8Array.of(1)]);
  await client.close();
  assert.deepEqual(told, []);
  assert.equal(statSync(inOwn('1.page')).size, 1);
});

test('a link in place of the store is refused by name', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'rootlight-outside-'));
  symlinkSync(outside, join(folder, OWN));
  const [told] = await write();
  assert.match(told, /symbolic link/);
  assert.deepEqual(readdirSync(outside), []);
  rmSync(outside, { recursive: true });
});

test('files that a killed process has not finished are removed by the next writer', async () => {
  make(OWN, { '3.page.new': 'half', '4.page.0b0f6a52-6d1e-4a52-9a0a-7f0c4a0d9f11.new': 'half', '5.page.mine.new': 'mine', 'notes.new': 'mine' });
  await write();
  assert.deepEqual(readdirSync(inOwn()).sort(), ['0.page', '5.page.mine.new', 'notes.new']);
});
