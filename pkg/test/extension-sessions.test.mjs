// What the pages of one site learn of those of another through the example of an extension. Needs neither a browser nor a module.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getDomain } from 'tldts';
import { budgetOf } from '../../examples/extension/budget.js';
import { clientsFor } from '../../examples/extension/clients.js';
import { sessionOf } from '../../examples/extension/session.js';
import { sitesBy } from '../../examples/extension/sites.js';

const siteOf = sitesBy(getDomain);

/** Clients that remember what is sent through them, as a light client does, and pages of several origins. */
function setup() {
  const opened = [];
  const open = async (origin) => {
    const sent = [];
    const filters = [];
    const client = {
      origin, closed: 0,
      on() {},
      close: () => (client.closed += 1),
      async request({ method, params: [first, second] = [] }) {
        if (method === 'eth_sendRawTransaction') return sent.push(first), `hash of ${first}`;
        if (method === 'eth_getTransactionCount') return second === 'pending' ? sent.length : 0;
        if (method === 'eth_getTransactionByHash') return sent.find((transaction) => first === `hash of ${transaction}`) ?? null;
        if (method === 'eth_newPendingTransactionFilter') return `${origin}/${filters.push(sent.length) - 1}`;
        if (method === 'eth_getFilterChanges') return sent.slice(filters[first.split('/').at(-1)]);
        return 'done';
      },
    };
    opened.push(client);
    return client;
  };
  const clients = clientsFor(open, siteOf);
  const page = (origin) => {
    const posts = [];
    const ends = [];
    const connection = clients.join(origin, () => session.end());
    const port = { postMessage: (message) => posts.push(message), disconnect() {} };
    const session = sessionOf(port, connection.provider, { enter: () => true, leave() {} }, () => (ends.push(origin), connection.leave()));
    return {
      session, posts, ends,
      async ask(method, ...params) {
        await session.take({ id: 1, method, params });
        const { result, error } = posts.at(-1);
        return error ? { error } : result;
      },
      close: () => session.end(),
    };
  };
  return { clients, opened, page };
}

/** What a page sees of a sent transaction. */
async function seen(page, hash, filter) {
  return {
    count: await page.ask('eth_getTransactionCount', '0x1', 'pending'),
    transaction: await page.ask('eth_getTransactionByHash', hash),
    events: await page.ask('eth_getFilterChanges', filter),
  };
}

test('pending transactions and nonces of a site are shown to its own pages only', async () => {
  const { page } = setup();
  const [other, reader, sender] = [page('https://b.example'), page('https://c.example'), page('https://a.example')];
  // The other site sends too, so that it has a client of its own.
  await other.ask('eth_sendRawTransaction', 'own');
  const filters = [await other.ask('eth_newPendingTransactionFilter'), await reader.ask('eth_newPendingTransactionFilter')];
  const hash = await sender.ask('eth_sendRawTransaction', 'raw');
  assert.equal(hash, 'hash of raw');
  const own = page('https://a.example');
  assert.deepEqual([await own.ask('eth_getTransactionCount', '0x1', 'pending'), await own.ask('eth_getTransactionByHash', hash)], [1, 'raw']);
  assert.deepEqual(await seen(other, hash, filters[0]), { count: 1, transaction: null, events: [] });
  assert.deepEqual(await seen(reader, hash, filters[1]), { count: 0, transaction: null, events: [] });
});

/** A page, of a site or of the extension, whose client fails with an error and has had a fault. */
function withWords(error, isOwn) {
  const posts = [];
  const client = { request: async ({ method }) => (method === 'rootlight_syncStatus' ? { currentBlock: '0x1', fault: error.message } : Promise.reject(error)) };
  const provider = async (method) => (method === 'eth_chainId' ? Promise.reject(error) : client);
  const session = sessionOf({ postMessage: (message) => posts.push(message), disconnect() {} }, provider, { enter: () => true, leave() {} }, undefined, isOwn);
  return { session, posts };
}

test('what the node of the user says, and its name, are told to the extension\'s own pages only', async () => {
  const words = 'no connection to node.corp.internal: project 0123456789abcdef is over quota';
  // The node chooses the code when it refuses a transaction.
  const failures = [[-32002, 'eth_getBalance'], [4900, 'eth_chainId'], [undefined, 'eth_chainId'], [-32005, 'eth_sendRawTransaction']];
  for (const [code, method] of failures) {
    for (const isOwn of [false, true]) {
      const { session, posts } = withWords(Object.assign(new Error(words), { code, data: words }), isOwn);
      for (const asked of [method, 'rootlight_syncStatus']) await session.take({ id: 1, method: asked, params: [] });
      session.tell({ code: 1013, message: words });
      assert.equal(posts[0].error.code, code ?? -32603);
      assert.ok(posts[1].result.fault && posts[1].result.currentBlock === '0x1' && posts[2].connection.code === 1013);
      for (const post of posts) assert.equal(JSON.stringify(post).includes(words), isOwn, JSON.stringify(post));
    }
  }
  const { session, posts } = withWords(Object.assign(new Error('execution reverted'), { code: 3, data: '0x08c379a0' }));
  await session.take({ id: 1, method: 'eth_call', params: [] });
  assert.deepEqual(posts, [{ id: 1, error: { code: 3, message: 'execution reverted', data: '0x08c379a0' } }]);
  session.tell({ chainId: '0x1e' });
  assert.deepEqual(posts[1], { connection: { chainId: '0x1e' } });
});

test('a page whose requests are refused a thousand times in a row is disconnected', async () => {
  const ends = [];
  let allowed = false;
  const port = { postMessage() {}, disconnect: () => ends.push('port') };
  const session = sessionOf(port, async () => ({ request: async () => '0x1' }), { enter: () => allowed, leave() {} }, () => ends.push('session'));
  const refuse = async (times) => {
    for (let id = 0; id < times; id += 1) await session.take({ id, method: 'eth_chainId' });
  };
  await refuse(999);
  allowed = true;
  await session.take({ id: 1, method: 'eth_chainId' });
  allowed = false;
  await refuse(999);
  assert.deepEqual(ends, []);
  await refuse(2);
  assert.deepEqual(ends, ['session', 'port']);
});

test('sites that only read share one client, and keep their filters when they begin to send', async () => {
  const { opened, page } = setup();
  const pages = ['a', 'b', 'c'].map((name) => page(`https://${name}.example`));
  const ids = await Promise.all(pages.map((each) => each.ask('eth_newPendingTransactionFilter')));
  assert.deepEqual(opened.map(({ origin }) => origin), [undefined]);
  await pages[0].ask('eth_sendRawTransaction', 'raw');
  assert.deepEqual(opened.map(({ origin }) => origin), [undefined, 'https://a.example']);
  assert.deepEqual(await pages[0].ask('eth_getFilterChanges', ids[0]), []);
  // Two clients may give the same id; an event says by which one it comes.
  const event = { type: 'eth_subscription', data: { subscription: ids[0], result: 1 } };
  for (const client of opened) pages[0].session.emit(event, client);
  assert.equal(pages[0].posts.filter((post) => post.event).length, 1);
});

test('the clients of senders are limited, and those of sites without a page make room', async () => {
  const { clients, opened, page } = setup();
  const pages = Array.from({ length: 8 }, (_, index) => page(`https://${index}.example`));
  for (const each of pages) assert.equal(await each.ask('eth_sendRawTransaction', 'raw'), 'hash of raw');
  const late = page('https://late.example');
  assert.equal((await late.ask('eth_sendRawTransaction', 'raw')).error.code, -32005);
  assert.equal(await late.ask('eth_chainId'), 'done');
  pages[3].close();
  assert.equal(await late.ask('eth_sendRawTransaction', 'raw'), 'hash of raw');
  await new Promise(setImmediate);
  assert.deepEqual(opened.filter(({ closed }) => closed > 0).map(({ origin }) => origin), ['https://3.example']);
  clients.end();
  await new Promise(setImmediate);
  assert.ok(opened.every(({ closed }) => closed === 1));
});

const RAW = ['eth_sendRawTransaction', 'raw'];

/** Opens pages of origins, each of which sends. */
async function senders(page, origins) {
  const pages = origins.map(page);
  for (const each of pages) assert.equal(await each.ask(...RAW), 'hash of raw');
  return pages;
}

test('a site with many subdomains leaves the other sites their places, and gives back those that it has beyond them', async () => {
  const { opened, page } = setup();
  const [honest] = await senders(page, ['https://honest.example']);
  const many = await senders(page, Array.from({ length: 7 }, (_, index) => `https://${index}.greedy.co.uk`));
  // Its eighth origin takes no place of another site, nor of its own pages.
  assert.equal((await page('https://8.greedy.co.uk:8443').ask(...RAW)).error.code, -32005);
  await senders(page, ['https://second.co.uk', 'https://third.example', 'http://127.0.0.1:8080', 'http://localhost']);
  await new Promise(setImmediate);
  const closed = () => opened.filter((client) => client.closed > 0).map(({ origin }) => origin);
  assert.deepEqual(closed(), [0, 1, 2, 3].map((index) => `https://${index}.greedy.co.uk`));
  assert.deepEqual([honest, ...many].flatMap(({ ends }) => ends), closed());
  assert.equal(await honest.ask(...RAW), 'hash of raw');
});

test('a site with many subdomains does not push out those that were closed a moment ago either', async () => {
  const { opened, page } = setup();
  const [honest] = await senders(page, ['https://honest.example']);
  honest.close();
  for (let index = 0; index < 30; index += 1) (await senders(page, [`https://${index}.greedy.example`]))[0].close();
  await new Promise(setImmediate);
  assert.equal(opened.find(({ origin }) => origin === 'https://honest.example').closed, 0);
  assert.equal(opened.filter((client) => client.closed === 0).length, 8);
});

test('sites that have a place each keep it while they have a page', async () => {
  const { page } = setup();
  await senders(page, Array.from({ length: 8 }, (_, index) => `https://www.${index}.example`));
  assert.equal((await page('https://late.example').ask(...RAW)).error.code, -32005);
});

test('a method that does not exist takes no place of a sender', async () => {
  const { opened, page } = setup();
  for (const method of ['eth_send', 'eth_sendRaw', 'eth_sendRawTransactions', 'eth_resend', 'eth_sendTransaction', 'rsk_sendNothing']) await page('https://a.example').ask(method);
  assert.deepEqual(opened.map(({ origin }) => origin), [undefined]);
});

test('a connection that the extension ends, as after new settings, leaves its place', async () => {
  const { clients, page } = setup();
  const pages = await senders(page, Array.from({ length: 8 }, (_, index) => `https://${index}.example`));
  clients.end();
  for (const { session } of pages) session.end();
  // The browser may still tell of the end of the same connection.
  for (const { session } of pages) session.end();
  assert.deepEqual(pages.flatMap(({ ends }) => ends).length, 8);
  await senders(page, Array.from({ length: 8 }, (_, index) => `https://later-${index}.example`));
  const again = page('https://again.example');
  assert.equal((await again.ask(...RAW)).error.code, -32005);
});

test('the subdomains of a site share its budget, and other sites have their own', () => {
  const budgets = ['https://a.greedy.example', 'http://b.greedy.example:81', 'https://honest.example'].map((origin) => budgetOf(siteOf(origin)));
  assert.equal(budgets[0], budgets[1]);
  assert.notEqual(budgets[0], budgets[2]);
});

test('a site is what somebody has registered', () => {
  const sites = {
    'https://a.b.example.com': 'example.com', 'https://example.com:8443': 'example.com', 'http://x.example.co.uk': 'example.co.uk', 'https://example.com.': 'example.com',
    'http://localhost:3000': 'localhost', 'http://127.0.0.1:8080': '127.0.0.1', 'http://[::1]:80': '[::1]', 'https://co.uk': 'co.uk',
  };
  for (const [origin, site] of Object.entries(sites)) assert.equal(siteOf(origin), site, origin);
});
