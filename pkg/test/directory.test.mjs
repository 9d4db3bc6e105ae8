// Verified headers in a directory, in Node.js.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { createProvider } from '../index.js';
import { pagesIn } from '../store.js';
import { serveChain } from './lib/chain-server.mjs';
import { runScript } from './lib/run-script.mjs';
import { until } from './lib/wait.mjs';

const BLOCKS = 600;

/** Pages of 64 headers that the chain fills; the last one is not full. */
const PAGES = 10;

let served;
let folder;

before(async () => {
  served = await serveChain(BLOCKS);
});
after(() => served.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-pages-'));
});
// A client that waits for the lock may look at it once more.
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

/** Number of requests of a visit that reaches the head and writes. */
async function visit(storage) {
  const before = served.asked.count;
  const provider = await createProvider({ ...served.options, storage, pollSeconds: 3_600 });
  assert.equal(Number(await provider.request({ method: 'eth_blockNumber' })), BLOCKS);
  const asked = served.asked.count - before;
  await until(areWritten, 'all pages');
  provider.close();
  await until(() => !files().includes('writer'), 'the lock is released');
  return asked;
}

/** Whether all pages are there, and none is what a test has written. */
function areWritten() {
  const [chain] = readdirSync(folder);
  const pages = files().filter((name) => name.endsWith('.page'));
  return pages.length === PAGES && pages.every((name) => (statSync(join(folder, chain, name), { throwIfNoEntry: false })?.size ?? 0) > 1_000);
}

/** The files of the only chain in the directory. */
function files() {
  const [chain] = readdirSync(folder);
  return chain ? readdirSync(join(folder, chain)) : [];
}

test('the next start takes few requests, with a path and with a file address', async () => {
  const cold = await visit(folder);
  const warm = await visit(pathToFileURL(`${folder}/`));
  assert.ok(cold > BLOCKS && warm < 40, `${cold} requests cold, ${warm} warm`);
  assert.ok(files().includes('0.page') && files().every((name) => /^\d+\.page$/.test(name)), String(files()));
});

test('damaged and missing pages are fetched again', async () => {
  await visit(folder);
  const [chain] = readdirSync(folder);
  writeFileSync(join(folder, chain, '4.page'), 'junk');
  const damaged = await visit(folder);
  rmSync(join(folder, chain, '2.page'));
  const missing = await visit(folder);
  const mended = await visit(folder);
  assert.ok(damaged > 64 && damaged < BLOCKS && missing > damaged && mended < 40, JSON.stringify({ damaged, missing, mended }));
});

test('pages of other versions of the format are deleted, and other files are not', async () => {
  for (const name of ['rootlight-v0-mainnet-newest', 'rootlight-v1-testnet-newest', 'mine']) mkdirSync(join(folder, name));
  const pages = pagesIn(folder, { network: 'mainnet' });
  await pages.save(0, [Uint8Array.of(1)]);
  assert.deepEqual(readdirSync(folder).sort(), ['mine', 'rootlight-v1-mainnet-newest', 'rootlight-v1-testnet-newest']);
  pages.close();
});

test('of two clients one writes, and the other takes over', async () => {
  const turns = [];
  const open = (name) => pagesIn(folder, { network: 'mainnet' }, { onTurn: (first) => turns.push([name, first]) });
  const first = open('first');
  await first.save(0, [Uint8Array.of(1)]);
  const second = open('second');
  await second.save(0, [Uint8Array.of(2), Uint8Array.of(3)]);
  assert.deepEqual([await second.count(), ...(await second.read(0))], [1, 1]);
  first.close();
  await until(() => turns.length > 0, 'the second client becomes the writer');
  assert.deepEqual(turns, [['second', 0]]);
  await second.save(0, [Uint8Array.of(2), Uint8Array.of(3)]);
  assert.equal(await second.count(), 2);
  second.close();
});

test('the lock of a process that was killed is taken over, and that of a running one is not', async () => {
  const script = (end) => `
    import { pagesIn } from './store.js';
    const pages = pagesIn(JSON.parse(process.argv[1]), { network: 'mainnet' });
    await pages.save(0, [Uint8Array.of(1)]);
    console.log(process.pid);
    ${end}`;
  const { stdout } = await runScript(script("process.kill(process.pid, 'SIGKILL');"), [folder]);
  assert.ok(files().includes('writer'), stdout);
  const pages = pagesIn(folder, { network: 'mainnet' });
  await pages.save(1, [Uint8Array.of(2)]);
  assert.equal(await pages.count(), 2);
  await runScript(script(''), [folder]);
  assert.deepEqual([await pages.count(), ...(await pages.read(1))], [2, 2]);
  pages.close();
});

/** The file of the lock of a chain of mainnet. */
const lock = () => join(folder, 'rootlight-v1-mainnet-newest', 'writer');

test('a client in another thread of the process is not the writer, and leaves the lock alone', async () => {
  const pages = pagesIn(folder, { network: 'mainnet' });
  await pages.save(0, [Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)]);
  const held = readFileSync(lock(), 'utf8');
  const text = `
    import { workerData } from 'node:worker_threads';
    const { pagesIn } = await import(workerData.store);
    const pages = pagesIn(workerData.folder, { network: 'mainnet' });
    await pages.save(0, [Uint8Array.of(9)]);
    await pages.close();`;
  const store = new URL('../store.js', import.meta.url).href;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(text)}`), { workerData: { folder, store } });
  assert.equal(await new Promise((resolve, reject) => thread.once('exit', resolve).once('error', reject)), 0);
  assert.equal(readFileSync(lock(), 'utf8'), held);
  assert.deepEqual([await pages.count(), ...(await pages.read(0))], [3, 1]);
  await pages.close();
  assert.ok(!files().includes('writer'));
});

test('new upstreams of a client in a worker thread do not take the lock of the former client', async () => {
  const options = { ...served.options, storage: folder, worker: 'dedicated', pollSeconds: 3_600 };
  const provider = await createProvider(options);
  await until(areWritten, 'all pages');
  const [chain] = readdirSync(folder);
  const writer = () => {
    try {
      return readFileSync(join(folder, chain, 'writer'), 'utf8');
    } catch {
      return undefined;
    }
  };
  const former = writer();
  await provider.setUpstreams(served.url);
  await until(() => writer() && writer() !== former, 'the next writer');
  assert.ok(areWritten());
  assert.equal(Number(await provider.request({ method: 'eth_blockNumber' })), BLOCKS);
  provider.close();
  await until(() => !files().includes('writer'), 'the lock is released');
});

/** Owners of a lock of whom our process cannot see whether they run. */
const HIDDEN = [[process.pid, 'another'], [process.pid, hostname()], [2 ** 30, 'another']];

test('the lock of another container or thread is left alone while it shows life', async () => {
  mkdirSync(join(folder, 'rootlight-v1-mainnet-newest'));
  for (const owner of HIDDEN) {
    const text = JSON.stringify([...owner, 'token']);
    writeFileSync(lock(), text);
    const pages = pagesIn(folder, { network: 'mainnet' });
    await pages.save(0, [Uint8Array.of(1)]);
    assert.equal(await pages.count(), 0, text);
    await pages.close();
    assert.equal(readFileSync(lock(), 'utf8'), text);
  }
});

/** The number of pages after an attempt to write one. A client that was closed may be looking at the lock still. */
async function write() {
  const pages = pagesIn(folder, { network: 'mainnet' });
  await pages.save(0, [Uint8Array.of(1)]);
  const count = await pages.count();
  await pages.save(0, []);
  await pages.close();
  return count;
}

test('a client whose clock is wrong leaves the lock of an owner that shows life alone, and takes over that of one that does not', async (t) => {
  mkdirSync(join(folder, 'rootlight-v1-mainnet-newest'));
  const present = Date.now();
  for (const hours of [-10_000, -1, 1, 10_000]) {
    t.mock.timers.enable({ apis: ['Date'], now: present + hours * 3_600_000 });
    for (const owner of HIDDEN) {
      const text = JSON.stringify([...owner, 'token']);
      writeFileSync(lock(), text);
      assert.deepEqual([await write(), readFileSync(lock(), 'utf8')], [0, text], `${hours} hours`);
      utimesSync(lock(), 0, 0);
      await until(write, 'the takeover');
      await until(() => files().length === 0, 'no file is left');
    }
    t.mock.timers.reset();
  }
});

test('a writer whose clock is wrong shows life by the clock of the file system', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 0 });
  const pages = pagesIn(folder, { network: 'mainnet' });
  await pages.save(0, [Uint8Array.of(1)]);
  utimesSync(lock(), 1_000, 1_000);
  await until(() => statSync(lock()).mtimeMs !== 1_000_000, 'a sign of life');
  t.mock.timers.reset();
  assert.ok(Math.abs(Date.now() - statSync(lock()).mtimeMs) < 3_600_000);
  await pages.close();
});

test('the lock of a container or thread without a sign of life is taken over', async () => {
  mkdirSync(join(folder, 'rootlight-v1-mainnet-newest'));
  for (const owner of [...HIDDEN, []]) {
    writeFileSync(lock(), owner.length ? JSON.stringify([...owner, 'token']) : '');
    utimesSync(lock(), 0, 0);
    const pages = pagesIn(folder, { network: 'mainnet' });
    await pages.save(0, [Uint8Array.of(1)]);
    assert.equal(await pages.count(), 1, String(owner));
    await pages.save(0, []);
    await pages.close();
    assert.ok(!files().includes('writer'), String(owner));
  }
});

/** A time that no clock here has reached, and one from before all signs of life. */
const [FUTURE, PAST] = [Date.now() / 1_000 + 400_000_000, 0];

test('a lock from the future is left to an owner that shows life, and is taken over from one that does not', async () => {
  mkdirSync(join(folder, 'rootlight-v1-mainnet-newest'));
  for (const owner of [...HIDDEN, []]) {
    const text = owner.length ? JSON.stringify([...owner, 'token']) : '';
    writeFileSync(lock(), text);
    // An owner whose clock is ahead touches its lock again.
    for (let touch = 0; touch < 3; touch += 1) {
      utimesSync(lock(), FUTURE, FUTURE);
      assert.equal(await write(), 0, text);
      assert.equal(readFileSync(lock(), 'utf8'), text);
    }
    // From now on the lock ages as any other.
    const { mtimeMs } = statSync(lock());
    assert.ok(mtimeMs <= Date.now(), text);
    utimesSync(lock(), PAST, PAST);
    await until(write, 'the takeover');
    assert.ok(!files().includes('writer'), text);
  }
});

test('a writer whose clock was wrong for a while keeps its lock', async () => {
  const pages = pagesIn(folder, { network: 'mainnet' });
  await pages.save(0, [Uint8Array.of(1)]);
  const held = readFileSync(lock(), 'utf8');
  utimesSync(lock(), FUTURE, FUTURE);
  const other = pagesIn(folder, { network: 'mainnet' });
  await other.save(0, [Uint8Array.of(2), Uint8Array.of(3)]);
  assert.deepEqual([await other.count(), readFileSync(lock(), 'utf8')], [1, held]);
  await other.close();
  await pages.save(1, [Uint8Array.of(2)]);
  assert.equal(await pages.count(), 2);
  await pages.close();
  assert.ok(!files().includes('writer'));
});

test('a writer shows life, and stops writing when another client has taken its lock', async () => {
  const told = [];
  const pages = pagesIn(folder, { network: 'mainnet' }, { onError: ({ message }) => told.push(message) });
  await pages.save(0, [Uint8Array.of(1)]);
  utimesSync(lock(), 0, 0);
  await until(() => statSync(lock()).mtimeMs > Date.now() - 20_000, 'a sign of life');
  writeFileSync(lock(), JSON.stringify([1, 'another', 'token']));
  await pages.save(0, [Uint8Array.of(2)]);
  assert.deepEqual([await pages.count(), ...(await pages.read(0))], [1, 1]);
  assert.deepEqual(told, ['verified headers are not kept: another client has become the writer of this directory']);
  await pages.close();
  assert.match(readFileSync(lock(), 'utf8'), /token/);
});

test('a directory that cannot be written is reported once', async () => {
  writeFileSync(join(folder, 'file'), '');
  const told = [];
  const pages = pagesIn(join(folder, 'file'), { network: 'mainnet' }, { onError: ({ message }) => told.push(message) });
  await pages.save(0, [Uint8Array.of(1)]);
  assert.equal(await pages.count(), 0);
  assert.equal(told.length, 1);
  assert.match(told[0], /^verified headers are not kept: (ENOTDIR|EEXIST)/);
});
