// Lives of providers and of the instances that they live in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instance } from '../instance.js';
import { limited, newLife } from '../life.js';
import { localLocks } from '../locks.js';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a pending call is settled by its work or by the end, whichever comes first', async () => {
  const life = newLife();
  assert.equal(await life.run(() => 1), 1);
  assert.equal(await life.run(async () => 2, true), 2);
  await assert.rejects(life.run(() => { throw new Error('mine'); }), /mine/);
  const waits = [false, true].map((quiet) => life.run(() => new Promise(() => {}), quiet));
  const told = [];
  life.onEnd((reason) => told.push(['first', reason]));
  life.onEnd((reason) => told.push(['second', reason]));
  life.end('over');
  life.end('again');
  for (const wait of waits) assert.equal(await wait.catch((reason) => reason), 'over');
  assert.equal(await life.run(() => 3).catch((reason) => reason), 'over');
  life.onEnd((reason) => told.push(['late', reason]));
  assert.deepEqual(told, [['first', 'over'], ['second', 'over'], ['late', 'over']]);
  assert.deepEqual([life.isOver, life.reason], [true, 'over']);
});

test('Node.js is kept running exactly while a call is pending', async (t) => {
  const running = new Set();
  t.mock.method(globalThis, 'setInterval', () => {
    const timer = {};
    running.add(timer);
    return timer;
  });
  t.mock.method(globalThis, 'clearInterval', (timer) => void running.delete(timer));
  const life = newLife();
  const go = [];
  const works = [false, false, true].map((quiet) => life.run(() => new Promise((resolve) => go.push(resolve)), quiet));
  assert.equal(running.size, 1);
  go[0]();
  await works[0];
  assert.equal(running.size, 1);
  go[1]();
  await works[1];
  assert.equal(running.size, 0);
  go[2]();
  await works[2];
  const last = assert.rejects(life.run(() => new Promise(() => {})), /over/);
  assert.equal(running.size, 1);
  life.end(new Error('over'));
  await last;
  assert.equal(running.size, 0);
});

test('a signal and a time limit end a life unless they are cancelled', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ended = (make) => {
    const life = newLife();
    make(life);
    return life.reason;
  };
  assert.equal(ended((life) => limited(life)), undefined);
  assert.equal(ended((life) => limited(life, AbortSignal.abort('before'))), 'before');
  const controllers = [new AbortController(), new AbortController()];
  const lives = controllers.map(() => newLife());
  const off = controllers.map(({ signal }, place) => limited(lives[place], signal, 50));
  off[0]();
  for (const controller of controllers) controller.abort('abort');
  t.mock.timers.tick(50);
  assert.deepEqual(lives.map(({ reason }) => reason), [undefined, 'abort']);
  const slow = newLife();
  limited(slow, undefined, 50);
  t.mock.timers.tick(50);
  assert.equal(slow.reason.code, 4900);
});

/** An instance with the exports that the test gives. */
async function made(exports, life = newLife()) {
  let guarded;
  const instantiate = ({ guard, rootlightSleep }) => ({
    init: async () => {
      guarded = guard({ memory: new WebAssembly.Memory({ initial: 3 }), ...exports });
    },
    sleep: rootlightSleep,
  });
  const { sleep } = await instance(instantiate, undefined, life);
  return { guarded, life, sleep };
}

test('an exception of an instance ends it after the outermost call', async () => {
  const order = [];
  let again;
  const { guarded, life } = await made({
    works: (a, b) => a + b,
    outer: () => {
      // Like a caller in between that catches the exception.
      try {
        again.inner();
      } catch {
        order.push('caught');
      }
      assert.throws(() => again.works(1, 2), /unreachable/, 'no inner call runs any more');
      order.push('outer');
    },
    inner: () => {
      order.push('inner');
      throw new WebAssembly.RuntimeError('unreachable');
    },
  });
  again = guarded;
  life.onEnd(() => order.push('end'));
  assert.equal(guarded.works(1, 2), 3);
  guarded.outer();
  assert.deepEqual(order, ['inner', 'caught', 'outer', 'end']);
  assert.match(life.reason.message, /ended with 1 MiB of memory in use: RuntimeError: unreachable/);
  assert.equal(life.reason.code, 4900);
  assert.deepEqual(guarded.works(1, 2), [], 'later calls return an empty list');
  assert.equal(order.length, 4);
});

test('pauses end after their time, or with the life', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { life, sleep } = await made({});
  let woken = 0;
  for (const time of [10, 1_000]) void sleep(time).then(() => (woken += 1));
  t.mock.timers.tick(10);
  await settled();
  assert.equal(woken, 1);
  life.end(new Error('over'));
  await settled();
  assert.equal(woken, 2);
  await sleep(1_000);
});

test('a lock of a process passes from one holder to the next', async () => {
  const locks = localLocks();
  const order = [];
  const hold = (name, options = {}) => {
    let free;
    const done = locks.request(name, options, (lock) => {
      order.push(lock && name);
      return lock && new Promise((resolve) => (free = resolve));
    });
    return { done, free: () => free() };
  };
  const first = hold('a');
  const second = hold('a');
  const abort = new AbortController();
  const third = hold('a', { signal: abort.signal });
  const refused = assert.rejects(third.done, /closed/);
  await hold('a', { ifAvailable: true }).done;
  const other = hold('b', { ifAvailable: true });
  assert.deepEqual(order, ['a', null, 'b']);
  abort.abort(new Error('closed'));
  first.free();
  await settled();
  assert.deepEqual(order, ['a', null, 'b', 'a']);
  second.free();
  await refused;
  const last = hold('a');
  await settled();
  assert.equal(order.length, 5);
  last.free();
  other.free();
  await last.done;
});
