// What the pages of one site learn of those of another through the example of an extension. Needs neither a browser nor a module.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientsFor } from '../../examples/extension/clients.js';
import { sessionOf } from '../../examples/extension/session.js';

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
  const clients = clientsFor(open);
  const page = (origin) => {
    const posts = [];
    const connection = clients.join(origin);
    const session = sessionOf({ postMessage: (message) => posts.push(message), disconnect() {} }, connection.provider, { enter: () => true, leave() {} });
    return {
      session, posts,
      async ask(method, ...params) {
        await session.take({ id: 1, method, params });
        const { result, error } = posts.at(-1);
        return error ? { error } : result;
      },
      close: () => (session.end(), connection.leave()),
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
