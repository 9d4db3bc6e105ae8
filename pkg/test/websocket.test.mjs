// The transport over WebSocket, with the other side in the test's hands.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { webSocketTransport } from '../websocket.js';
import { FakeSocket } from './lib/fake-socket.mjs';

const HEADS = { method: 'eth_subscription', params: { subscription: '0x1', result: {} } };

const start = (options) => webSocketTransport('wss://node.example/key', { WebSocket: FakeSocket, ...options });
const call = (id) => ({ jsonrpc: '2.0', id, method: 'm' });
const ask = (transport, ...ids) => transport(JSON.stringify(ids.length > 1 ? ids.map(call) : call(ids[0])));
const text = async (answer) => new TextDecoder().decode(await answer);

/** Whether an exchange is still pending after all pending work has run. */
async function waits(answer) {
  const open = Symbol('open');
  const settled = answer.then(() => undefined, () => undefined);
  return (await Promise.race([settled, new Promise((resolve) => setImmediate(resolve, open))])) === open;
}

beforeEach(() => FakeSocket.made.splice(0));

/** Mocks the clocks. Node.js cannot mock `performance.now`, which pauses are measured with, so it follows `Date.now`. */
function mockClocks(t, ...more) {
  t.mock.timers.enable({ apis: ['Date', ...more] });
  t.mock.method(performance, 'now', () => Date.now());
}

test('one connection carries all exchanges, and waiting requests are sent in order', async () => {
  const transport = start();
  const early = [ask(transport, 1), ask(transport, 2, 3)];
  FakeSocket.last.open();
  const late = ask(transport, 4);
  assert.equal(FakeSocket.made.length, 1);
  assert.deepEqual(FakeSocket.last.sent, [call(1), [call(2), call(3)], call(4)]);
  for (const answer of ['{"id":4}', '[{"id":3},{"id":2}]', '{"id":1}']) FakeSocket.last.say(answer);
  assert.deepEqual(await Promise.all([...early, late].map(text)), ['{"id":1}', '[{"id":3},{"id":2}]', '{"id":4}']);
});

test('a response without an id goes to the oldest exchange, one with an unknown id is ignored', async () => {
  const transport = start();
  const [first, second, third] = [ask(transport, 1), ask(transport, 2), ask(transport, 3)];
  FakeSocket.last.open();
  for (const stray of [0, 4]) FakeSocket.last.say({ id: stray });
  assert.ok(await waits(first));
  FakeSocket.last.say('no JSON');
  assert.equal(await text(first), 'no JSON');
  FakeSocket.last.say('[{"id":"3"},{"id":null}]');
  assert.equal(await text(second), '[{"id":"3"},{"id":null}]');
  assert.ok(await waits(third));
  FakeSocket.last.say('null');
  assert.equal(await text(third), 'null');
  FakeSocket.last.say('null');
});

test('a call with the id of a pending one is refused and does not affect it', async () => {
  const transport = start();
  const first = ask(transport, 1, 2);
  FakeSocket.last.open();
  for (const ids of [[1], [2], [2, 3], [0, 1]]) await assert.rejects(ask(transport, ...ids), /a call with this id is pending/);
  const next = ask(transport, 3);
  FakeSocket.last.say('[{"id":1},{"id":2}]');
  FakeSocket.last.say('{"id":3}');
  assert.deepEqual(await Promise.all([first, next].map(text)), ['[{"id":1},{"id":2}]', '{"id":3}']);
  assert.equal(FakeSocket.last.sent.length, 2);
});

test('every connection subscribes to new blocks if there is a listener', async (t) => {
  mockClocks(t);
  const transport = start();
  const answer = ask(transport, 1);
  const [before] = FakeSocket.made;
  before.open();
  before.say(HEADS);
  assert.deepEqual(before.sent, [call(1)]);
  let heads = 0;
  transport.heads(() => (heads += 1));
  assert.equal(before.sent[1].method, 'eth_subscribe');
  before.say({ id: before.sent[1].id, result: '0x1' });
  for (const block of [1, 2]) {
    before.say(HEADS);
    assert.equal(heads, block);
  }
  assert.ok(await waits(answer), 'an announcement is not a response');
  before.onclose();
  await assert.rejects(answer, /connection lost/);
  t.mock.timers.tick(1_000);
  void ask(transport, 2);
  FakeSocket.last.open();
  assert.deepEqual(FakeSocket.last.sent.map(({ method }) => method), ['eth_subscribe', 'm']);
});

test('neither a listener nor closing opens a connection', () => {
  const transport = start();
  transport.heads(() => {});
  transport.close();
  assert.equal(FakeSocket.made.length, 0);
});

test('pauses between failing connections grow to a minute, and a response makes them short again', async (t) => {
  mockClocks(t);
  const transport = start();
  const fails = async (pause) => {
    const made = FakeSocket.made.length;
    const answer = ask(transport, 1);
    assert.equal(FakeSocket.made.length, made + 1);
    FakeSocket.last.onerror();
    await assert.rejects(answer, /^Error: no connection: start the node/);
    t.mock.timers.tick(pause - 1);
    await assert.rejects(ask(transport, 1), /^Error: no connection: start the node/);
    assert.equal(FakeSocket.made.length, made + 1, 'not before the pause is over');
    t.mock.timers.tick(1);
  };
  for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) await fails(pause);
  const answer = ask(transport, 1);
  FakeSocket.last.open();
  FakeSocket.last.say({ id: 1 });
  await answer;
  FakeSocket.last.onclose();
  t.mock.timers.tick(1_000);
  await fails(2_000);
});

test('a pause does not grow when the wall clock is set back', async (t) => {
  let [wall, monotonic] = [3_600_000, 0];
  t.mock.method(Date, 'now', () => wall);
  t.mock.method(performance, 'now', () => monotonic);
  const transport = start();
  const lost = ask(transport, 1);
  FakeSocket.last.onerror();
  await assert.rejects(lost, /no connection/);
  wall = 0;
  monotonic = 1_000;
  const answer = ask(transport, 2);
  FakeSocket.last.open();
  FakeSocket.last.say({ id: 2 });
  assert.equal(await text(answer), '{"id":2}');
});

test('an abandoned connection does not affect the next one', async (t) => {
  mockClocks(t);
  const transport = start({ maxLength: 20 });
  const answer = ask(transport, 1);
  const [old] = FakeSocket.made;
  old.open();
  transport.heads(() => assert.fail('what is too long is no announcement'));
  old.say({ ...HEADS, filling: 'x'.repeat(21) });
  await assert.rejects(answer, /not a text of at most 20 characters/);
  assert.equal(old.readyState, FakeSocket.CLOSED);
  t.mock.timers.tick(1_000);
  const again = ask(transport, 2);
  old.onclose();
  old.onerror();
  FakeSocket.last.open();
  FakeSocket.last.say({ id: 2 });
  assert.equal(await text(again), '{"id":2}');
});

test('bytes instead of text end the connection', async () => {
  const transport = start();
  const answer = ask(transport, 1);
  FakeSocket.last.open();
  FakeSocket.last.say(new TextEncoder().encode('{"id":1}'));
  await assert.rejects(answer, /not a text/);
});

test('an exchange has a time limit of its own', async (t) => {
  mockClocks(t, 'setTimeout');
  const transport = start({ timeout: 100 });
  const answer = ask(transport, 1);
  FakeSocket.last.open();
  t.mock.timers.tick(60);
  FakeSocket.last.say({ id: 1 });
  await answer;
  const [second, third] = [ask(transport, 2), ask(transport, 3)];
  const ended = [second, third].map((exchange) => assert.rejects(exchange, /the time limit is over/));
  t.mock.timers.tick(99);
  assert.ok(await waits(second));
  t.mock.timers.tick(1);
  await Promise.all(ended);
});

test('by default an exchange has 20 seconds and a response 32 Mi characters', async (t) => {
  mockClocks(t, 'setTimeout');
  const transport = start();
  const answer = ask(transport, 1);
  FakeSocket.last.open();
  t.mock.timers.tick(19_999);
  assert.ok(await waits(answer));
  const longest = `{"id":1}${' '.repeat(32 * 1024 * 1024 - 8)}`;
  FakeSocket.last.say(longest);
  assert.equal((await answer).length, longest.length);
  const tooLong = assert.rejects(ask(transport, 2), /at most 33554432 characters/);
  FakeSocket.last.say(`${longest} `);
  await tooLong;
  t.mock.timers.tick(2_000);
  const silent = assert.rejects(ask(transport, 3), /the time limit is over/);
  t.mock.timers.tick(20_000);
  await silent;
});

/** Whether a connection stays open while the other side sends a message this often, at once. */
function bears(count, message) {
  for (let sent = 0; sent < count && FakeSocket.last.readyState === FakeSocket.OPEN; sent += 1) FakeSocket.last.say(message);
  return FakeSocket.last.readyState === FakeSocket.OPEN;
}

test('a node that sends what nobody asked for is left for the longest pause', async (t) => {
  mockClocks(t);
  const long = `[${Array.from({ length: 50_000 }, () => '{"id":999999999}').join()}]`;
  for (const [count, message] of [[64, { id: 9 }], [64, '{"id":9}'], [1, long], [0, `${long}${' '.repeat(2 ** 20)}`]]) {
    const transport = start();
    const first = ask(transport, 1);
    FakeSocket.last.open();
    FakeSocket.last.say({ id: 1 });
    await first;
    const second = ask(transport, 2);
    const failed = assert.rejects(second, /too many messages that were not asked for/);
    assert.ok(bears(count, message));
    t.mock.timers.tick(59_000);
    assert.ok(await waits(second));
    assert.ok(!bears(1, message), 'one more in the same minute');
    await failed;
    t.mock.timers.tick(59_999);
    await assert.rejects(ask(transport, 3), /no connection/);
    t.mock.timers.tick(1);
    const again = ask(transport, 3);
    FakeSocket.last.open();
    FakeSocket.last.say({ id: 3 });
    await again;
  }
});

test('unasked messages are counted over a minute, and a node may send fewer for ever', (t) => {
  mockClocks(t);
  const transport = start();
  void ask(transport, 1);
  FakeSocket.last.open();
  for (let minute = 0; minute < 5; minute += 1) {
    assert.ok(bears(64, { id: 9 }));
    t.mock.timers.tick(60_000);
  }
});

test('announcements, and responses to a batch one by one, may be many', async (t) => {
  mockClocks(t);
  const transport = start();
  transport.heads(() => {});
  const batch = ask(transport, 1, 2, 3);
  const next = ask(transport, 4);
  FakeSocket.last.open();
  FakeSocket.last.say({ id: 1 });
  await batch;
  for (const id of [2, 3]) FakeSocket.last.say({ id, result: 'x'.repeat(2_000_000) });
  assert.ok(bears(5_998, HEADS));
  assert.ok(await waits(next));
  const failed = assert.rejects(next, /too many messages/);
  assert.ok(!bears(1, HEADS));
  await failed;
});

test('a long message of no exchange is not parsed', async (t) => {
  const transport = start();
  const answer = ask(transport, 1);
  FakeSocket.last.open();
  const parse = t.mock.method(JSON, 'parse');
  FakeSocket.last.say(`[{"id":9,"result":"${'x'.repeat(100_000)}"}]`);
  assert.equal(parse.mock.callCount(), 0);
  const long = `{"result":"${'x'.repeat(100_000)}", "id" : 1}`;
  FakeSocket.last.say(long);
  assert.equal(await text(answer), long);
});

test('what an abandoned connection still sends is ignored', async (t) => {
  mockClocks(t);
  const transport = start();
  const lost = assert.rejects(ask(transport, 1), /connection lost/);
  const [old] = FakeSocket.made;
  old.onclose();
  await lost;
  t.mock.timers.tick(1_000);
  const answer = ask(transport, 2);
  FakeSocket.last.open();
  old.say({ id: 2, result: 'of the abandoned one' });
  assert.ok(await waits(answer));
});

test('a closed transport ends pending exchanges and opens no connection', async () => {
  const transport = start();
  const answer = ask(transport, 1);
  transport.close();
  await assert.rejects(answer, /the transport is closed/);
  assert.equal(FakeSocket.last.readyState, FakeSocket.CLOSED);
  await assert.rejects(ask(transport, 2), /the transport is closed/);
  assert.equal(FakeSocket.made.length, 1);
});

test('a runtime without WebSocket is refused at once', () => {
  assert.throws(() => start({ WebSocket: null }), /this runtime has no WebSocket/);
});
