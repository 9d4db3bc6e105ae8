// The server of the package's program over HTTP and WebSocket, as strangers meet it.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { accessOf } from '../bin/access.js';
import { httpServer, messageMemory } from '../bin/http.js';
import { webSockets } from '../bin/sockets.js';
import { ask, startProgram } from './lib/program.mjs';
import { LIMIT, until } from './lib/wait.mjs';

let chain, account;
before(async () => {
  chain = await startProgram(['dev', '--http-port', '0', '--silent', '--batch-limit', '3']);
  [account] = (await ask(chain.url, 'eth_accounts')).result;
});
after(() => chain?.stop());

const JSON_TYPE = { 'content-type': 'application/json' };
const CALL = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';

async function post(body, headers = JSON_TYPE, path = '/') {
  const response = await fetch(new URL(path, chain.url), { method: 'POST', headers, body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text && JSON.parse(text) };
}

/** Sends the lines of a request as they are, because fetch sets some of them itself. */
function raw(lines) {
  const { hostname, port } = new URL(chain.url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, hostname, () => socket.write(`${lines.join('\r\n')}\r\n\r\n`));
    socket.setEncoding('utf8').on('error', reject).on('data', (data) => {
      text += data;
      const [, head, length] = /^([^]*?content-length: (\d+)[^]*?\r\n\r\n)/i.exec(text) ?? [];
      if (head === undefined || text.length < head.length + Number(length)) return;
      socket.destroy();
      resolve(text);
    });
  });
}

test('statuses are those of the native server', LIMIT, async () => {
  const status = async (...args) => (await post(...args)).status;
  assert.equal(await status(CALL), 200);
  assert.equal(await status(CALL, { 'content-type': 'Application/JSON-rpc; charset=utf-8' }), 200);
  assert.equal(await status(CALL, { 'content-type': 'text/plain' }), 415);
  assert.equal(await status('{"jsonrpc":"2.0","method":"eth_blockNumber"}'), 204);
  for (const unusable of ['{', '5', `[${Array(4).fill(CALL)}]`]) assert.equal(await status(unusable), 400, unusable);
  assert.equal(await status('{"id":1}'), 200, 'an object is a request, if a wrong one');
  assert.equal(await status(`[${Array(3).fill(CALL)}]`), 200);
  // With its quotes this text is two bytes above the limit of 5 MiB.
  const long = await post(`"${'x'.repeat(5 * 2 ** 20)}"`);
  assert.deepEqual([long.status, long.body.error.code], [413, -32005]);
  const get = async (path) => (await fetch(new URL(path, chain.url))).status;
  assert.deepEqual(await Promise.all(['/health', '/livez', '/readyz', '/', '/other'].map(get)), [200, 200, 200, 405, 405]);
  const { ready, blockNumber } = await (await fetch(new URL('/health', chain.url))).json();
  assert.deepEqual([ready, blockNumber], [true, 0]);
});

test('a body above 5 MiB is refused by its announced length, and without one before its end', LIMIT, async () => {
  const { host } = new URL(chain.url);
  const text = await raw(['POST / HTTP/1.1', `host: ${host}`, 'content-type: application/json', `content-length: ${6 * 2 ** 20}`]);
  assert.match(text, /^HTTP\/1\.1 413 /);
  const endless = await raw(['POST / HTTP/1.1', `host: ${host}`, 'content-type: application/json', 'transfer-encoding: chunked', '', `600000\r\n${'x'.repeat(0x60_0000)}`]);
  assert.match(endless, /^HTTP\/1\.1 413 /);
});

/** Starts a server with this function as its client; returns its address, a function that posts a body, and one that ends the server. */
async function serverOf(answer) {
  const service = { access: accessOf({ host: '127.0.0.1' }), batchLimit: 3, memory: messageMemory(), callerOf: () => [], answer };
  const server = httpServer(service);
  const sockets = webSockets(service);
  server.on('upgrade', sockets.upgrade);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    url,
    post: (body, options) => fetch(url, { method: 'POST', headers: JSON_TYPE, body, ...options }),
    stop: () => (sockets.close(), server.closeAllConnections(), new Promise((resolve) => server.close(resolve))),
  };
}

test('messages take memory of the server until they are answered, also those of callers who left', LIMIT, async (t) => {
  const waiting = [];
  const server = await serverOf(() => (waiting.length < 12 ? new Promise((resolve) => waiting.push(() => resolve('{}'))) : '{}'));
  t.after(server.stop);
  // Twelve messages of 5 MiB leave less than that of 64 MiB.
  const message = 'x'.repeat(5 * 2 ** 20);
  const leaving = new AbortController();
  const left = server.post(message, { signal: leaving.signal });
  const others = Array.from({ length: 11 }, () => server.post(message));
  await until(() => waiting.length === 12, 'all messages are being answered');
  leaving.abort();
  await assert.rejects(left);
  const refused = await server.post(message);
  assert.deepEqual([refused.status, (await refused.json()).error?.message], [503, 'no memory for the request at the moment']);
  for (const end of waiting.splice(0)) end();
  assert.deepEqual((await Promise.all(others)).map(({ status }) => status), Array(11).fill(200));
  const again = Array.from({ length: 12 }, () => server.post(message));
  await until(() => waiting.length === 12, 'new messages are being answered');
  for (const end of waiting.splice(0)) end();
  assert.deepEqual((await Promise.all(again)).map(({ status }) => status), Array(12).fill(200));
});

test('messages over WebSocket take the same memory as those over HTTP', LIMIT, async (t) => {
  const waiting = [];
  const server = await serverOf(() => (waiting.length < 12 ? new Promise((resolve) => waiting.push(() => resolve('{}'))) : '{}'));
  t.after(server.stop);
  const message = 'x'.repeat(5 * 2 ** 20);
  const opened = new WebSocket(server.url.replace('http', 'ws'));
  const answers = [];
  opened.on('message', (text) => answers.push(String(text)));
  await new Promise((resolve) => opened.once('open', resolve));
  for (let count = 0; count < 6; count += 1) opened.send(message);
  const others = Array.from({ length: 6 }, () => server.post(message));
  await until(() => waiting.length === 12, 'all messages are being answered');
  assert.equal((await server.post(message)).status, 503);
  const refused = new WebSocket(server.url.replace('http', 'ws'));
  refused.once('open', () => refused.send(message)).on('message', () => refused.close());
  assert.equal(await new Promise((resolve) => refused.once('close', resolve)), 1013, 'try again later');
  for (const end of waiting.splice(0)) end();
  assert.deepEqual((await Promise.all(others)).map(({ status }) => status), Array(6).fill(200));
  await until(() => answers.length === 6, 'all answers over WebSocket');
  const again = Array.from({ length: 12 }, () => server.post(message));
  await until(() => waiting.length === 12, 'new messages are being answered');
  for (const end of waiting.splice(0)) end();
  assert.deepEqual((await Promise.all(again)).map(({ status }) => status), Array(12).fill(200));
  opened.close();
});

test('why a message fails is told to the operator, without secrets, and not to its caller', LIMIT, async (t) => {
  const { mock: printed } = t.mock.method(console, 'error', () => {});
  const server = await serverOf(() => Promise.reject(new TypeError('no memory for https://user:PASSWORD@node.example/SECRETKEY\n\u001b[2Ja second line')));
  t.after(server.stop);
  const failed = await server.post(CALL);
  const text = await failed.text();
  assert.deepEqual([failed.status, JSON.parse(text).error], [500, { code: -32603, message: 'Internal server error' }]);
  const opened = new WebSocket(server.url.replace('http', 'ws'));
  opened.once('open', () => opened.send(CALL));
  const [code, reason] = await new Promise((resolve) => opened.once('close', (...given) => resolve(given)));
  assert.deepEqual([code, String(reason)], [1001, '']);
  assert.deepEqual(printed.calls.map(({ arguments: given }) => given), [
    ['a request failed with HTTP status 500: TypeError: no memory for https://node.example [2Ja second line'],
    ['a WebSocket is closed, its message failed: TypeError: no memory for https://node.example [2Ja second line'],
  ]);
});

test('another host name (DNS rebinding) is refused, over HTTP and WebSocket', LIMIT, async () => {
  const upgrade = ['upgrade: websocket', 'connection: upgrade', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=='];
  for (const lines of [['POST / HTTP/1.1', 'content-type: application/json', 'content-length: 0', 'connection: close'], ['GET / HTTP/1.1', ...upgrade]]) {
    const [first, ...rest] = lines;
    const refused = await raw([first, 'host: evil.example', ...rest]);
    assert.match(refused, /^HTTP\/1\.1 403 /, first);
    assert.match(refused, /host not allowed/);
  }
});

test('pages of other origins use no keys of accounts, and pages of this machine may', LIMIT, async () => {
  const from = (origin) => ({ ...JSON_TYPE, origin });
  const accounts = CALL.replace('eth_blockNumber', 'eth_accounts');
  const foreign = await post(accounts, from('https://evil.example'));
  assert.deepEqual([foreign.status, foreign.body.error.code], [200, 4100]);
  assert.match(foreign.body.error.message, /--cors https:\/\/evil\.example/);
  assert.equal(foreign.headers.get('access-control-allow-origin'), '*');
  for (const [method, params] of [['evm_mine', []], ['anvil_setBalance', [account, '0x1']], ['personal_sign', ['0x00', account]], ['eth_sendTransaction', [{ from: account }]]]) {
    assert.equal((await ask(chain.url, method, params, { origin: 'null' })).error.code, 4100, method);
  }
  assert.equal((await post(CALL, from('https://evil.example'))).body.result, '0x0');
  assert.ok((await post(accounts, from('http://localhost:3000'))).body.result.length >= 10);
  const preflight = await fetch(chain.url, { method: 'OPTIONS', headers: { origin: 'https://evil.example', 'access-control-request-private-network': 'true' } });
  assert.deepEqual(['access-control-allow-methods', 'access-control-allow-private-network'].map((name) => preflight.headers.get(name)), ['GET, POST, OPTIONS', 'true']);
  assert.equal(preflight.status, 204);
});

test('a page has filters of its own', LIMIT, async () => {
  const page = { origin: 'https://page.example' };
  const { result: id } = await ask(chain.url, 'eth_newBlockFilter', [], page);
  assert.deepEqual((await ask(chain.url, 'eth_getFilterChanges', [id], page)).result, []);
  for (const headers of [{}, { origin: 'https://other.example' }]) assert.equal((await ask(chain.url, 'eth_getFilterChanges', [id], headers)).error.code, -32000);
});

test('with --cors others are refused, and * admits all pages except to methods for named pages', LIMIT, async () => {
  const listed = await startProgram(['dev', '--http-port', '0', '--silent', '--cors', 'https://a.example']);
  const open = await startProgram(['dev', '--http-port', '0', '--silent', '--cors', '*']);
  try {
    const response = (url, origin) => fetch(url, { method: 'POST', headers: { ...JSON_TYPE, origin }, body: CALL.replace('eth_blockNumber', 'eth_accounts') });
    const admitted = await response(listed.url, 'https://a.example');
    assert.deepEqual([admitted.status, admitted.headers.get('access-control-allow-origin'), admitted.headers.get('vary')], [200, 'https://a.example', 'origin']);
    assert.equal((await response(listed.url, 'https://b.example')).status, 403);
    assert.ok((await (await response(open.url, 'https://b.example')).json()).result.length >= 10);
    // The method needs a page that `--cors` names.
    assert.equal((await ask(open.url, 'txpool_content', [], { origin: 'https://b.example' })).error.code, 4100);
  } finally {
    await Promise.all([listed.stop(), open.stop()]);
  }
});

/** A WebSocket with what it has received. */
async function socket(options) {
  const opened = new WebSocket(chain.socket, options);
  const heard = [];
  opened.on('message', (data) => heard.push(JSON.parse(data)));
  await new Promise((resolve, reject) => opened.once('open', resolve).once('error', reject));
  let next = 0;
  const call = async (method, ...params) => {
    const id = (next += 1);
    opened.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return until(() => heard.find((message) => message.id === id), method);
  };
  return { opened, heard, call, told: () => heard.filter(({ method }) => method === 'eth_subscription') };
}

test('subscriptions report blocks, logs and pending transactions, each to its own WebSocket', LIMIT, async () => {
  const [a, b] = [await socket(), await socket()];
  const { result: heads } = await a.call('eth_subscribe', 'newHeads');
  const { result: pending } = await a.call('eth_subscribe', 'newPendingTransactions');
  // A contract whose creation logs nothing but one event without data.
  const { result: hash } = await ask(chain.url, 'eth_sendTransaction', [{ from: account, gas: '0x30d40', data: '0x60006000a000' }]);
  const logs = await b.call('eth_subscribe', 'logs', {});
  await ask(chain.url, 'eth_sendTransaction', [{ from: account, gas: '0x30d40', data: '0x60006000a000' }]);
  await until(() => a.told().filter(({ params }) => params.subscription === heads).length === 2, 'two heads');
  await until(() => a.told().some(({ params }) => params.subscription === pending && params.result === hash), 'the pending transaction');
  await until(() => b.told().length === 1 && b.told()[0].params.subscription === logs.result, 'one log');
  const { result: head } = await ask(chain.url, 'eth_getBlockByNumber', ['latest', false]);
  assert.equal(a.told().filter(({ params }) => params.subscription === heads)[1].params.result.hash, head.hash);
  // Another WebSocket cannot end the subscription, and no head comes after its end.
  assert.equal((await b.call('eth_unsubscribe', heads)).result, false);
  assert.equal((await a.call('eth_unsubscribe', heads)).result, true);
  const before = a.told().filter(({ params }) => params.subscription === heads).length;
  await ask(chain.url, 'evm_mine');
  await a.call('eth_blockNumber');
  assert.equal(a.told().filter(({ params }) => params.subscription === heads).length, before);
  assert.equal((await ask(chain.url, 'eth_subscribe', ['newHeads'])).error.code, -32601, 'HTTP has no notifications');
  for (const { opened } of [a, b]) opened.close();
});

test('a WebSocket has at most 100 subscriptions, which end when it closes', LIMIT, async () => {
  const [limit, ofPages] = [100, 1_024];
  // All pages of one address may have 1,024 filters and subscriptions together (`MAX_FILTERS` / `PAGES_PART` of the module). So if
  // subscriptions outlived their WebSockets, the last ones would be refused.
  for (let made = 0; made <= ofPages + 2 * limit; made += limit) {
    const page = await socket({ origin: 'https://page.example' });
    const answers = await Promise.all(Array.from({ length: limit }, () => page.call('eth_subscribe', 'newHeads')));
    assert.ok(answers.every(({ result }) => result), `after ${made}: ${JSON.stringify(answers.find(({ error }) => error))}`);
    assert.equal((await page.call('eth_subscribe', 'newHeads')).error.code, -32005);
    page.opened.close();
    await new Promise((resolve) => page.opened.once('close', resolve));
  }
});

test('a WebSocket of another page uses no keys, and long messages end it', LIMIT, async () => {
  const page = await socket({ origin: 'https://evil.example' });
  assert.equal((await page.call('eth_accounts')).error.code, 4100);
  assert.ok((await page.call('eth_blockNumber')).result);
  page.opened.send('{');
  await until(() => page.heard.some(({ error }) => error?.code === -32700), 'an error for what is not JSON');
  page.opened.send('x'.repeat(5 * 2 ** 20 + 1));
  assert.equal(await new Promise((resolve) => page.opened.once('close', resolve)), 1009);
  const elsewhere = new WebSocket(`${chain.socket}/elsewhere`);
  const [status] = await new Promise((resolve) => elsewhere.once('unexpected-response', (_, response) => resolve([response.statusCode])).on('error', () => {}));
  assert.equal(status, 404);
});
