// What is told of an upstream that is of no use: which one, why, and what to do, in the words of docs/errors.md, and no more of its address
// than scheme, host and port.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { exchangeOver } from '../exchange.js';
import { createProvider, httpTransport } from '../index.js';
import { newLife } from '../life.js';
import { NO_CONNECTION, unreachable } from '../upstream-words.js';
import { serveChain } from './lib/chain-server.mjs';
import { transportTo } from './lib/chain-transport.mjs';
import { WORDS, checkWords } from './lib/documented.mjs';
import { inPage } from './lib/in-page.mjs';
import { listen } from './lib/upstream.mjs';
import { LIMIT } from './lib/wait.mjs';

const HASH = `0x${'11'.repeat(32)}`;
const BASE = { network: 'regtest', checkpoint: { number: 0, hash: HASH }, store: null };
const SECRET = 'SECRET-KEY-1234';

/** As {@link checkWords}, of an upstream whose address has a secret. */
function check(cause, name, message) {
  checkWords(cause, name, message);
  assert.doesNotMatch(message, /SECRET/);
}

/** The error of a start with this upstream. */
const failed = (upstream, more) => createProvider({ ...BASE, ...more, upstream }).then(
  (provider) => {
    provider.close();
    throw new Error('it starts');
  },
  (error) => error,
);

/** A server that responds with a status. */
const answering = (status, headers = {}, body = '') => listen(createServer((request, response) => response.writeHead(status, headers).end(body)));

test('each cause is told with the upstream and what to do, without the key', async () => {
  const gone = await answering(200);
  await gone.close();
  const servers = new Map([
    ['no key, or a wrong one', await answering(401)],
    ['refused', await answering(403)],
    ['wrong path', await answering(404)],
    ['broken node', await answering(500)],
    ['busy node', await answering(503, { 'retry-after': '1' })],
    ['no node', await answering(200, {}, '<html>')],
  ]);
  const causes = [['no program listens', gone.url], ['no such host', 'http://no-such-host.invalid'], ...[...servers].map(([cause, { url }]) => [cause, url])];
  try {
    for (const [cause, url] of causes) {
      const { origin } = new URL(url);
      check(cause, origin, (await failed(`${url}/${SECRET}?key=${SECRET}`)).message);
    }
  } finally {
    await Promise.all([...servers.values()].map(({ close }) => close()));
  }
});

/** Nodes that are too slow: each waits for `late` before it answers, or before the rest of its answer. */
const SLOW = {
  'never answers': () => {},
  'answers late': (response, late) => void late.then(() => response.end('{}')),
  'answers half, and the rest late': (response, late) => {
    response.write('{');
    void late.then(() => response.end('}'));
  },
};

for (const [name, answer] of Object.entries(SLOW)) {
  test(`a node that ${name} is told when the time limit is over`, async () => {
    let now;
    const late = new Promise((resolve) => (now = resolve));
    const slow = await listen(createServer((_, response) => answer(response, late)));
    const life = newLife();
    try {
      const exchange = exchangeOver(httpTransport(`${slow.url}/${SECRET}`, { timeout: 100 }), life, undefined, undefined, undefined, unreachable);
      check('slow node', 'name', `name: no response: ${await exchange('{}', false)}`);
      // The answer that comes after all changes nothing.
      now();
    } finally {
      life.end(new Error('over'));
      await slow.close();
    }
  });
}

// websocket.test.mjs provokes it.
test('a WebSocket that is not opened is told with what to do', () => {
  check('WebSocket in the package', 'name', `name: no response: ${NO_CONNECTION}`);
});

test('a page is told what to do about a node that it cannot reach', () => {
  globalThis.location = { origin: 'https://page.example' };
  try {
    const words = unreachable(new TypeError('Failed to fetch'));
    check('not reached from a page', 'name', `name: no response: ${words}`);
    assert.match(words, /pages of https:\/\/page\.example there/);
  } finally {
    delete globalThis.location;
  }
});

test('a browser’s page is told of a node that does not allow it, and of one that is not there', LIMIT, async () => {
  // This node answers every caller, and its headers allow no page.
  const strict = await listen(createServer((request, response) => response.end('{"jsonrpc":"2.0","id":1,"result":"0x1f"}')));
  const gone = await listen(createServer(() => {}));
  await gone.close();
  try {
    await inPage(async (run) => {
      const page = await run(async () => location.origin);
      for (const { url } of [strict, gone]) {
        const words = await run(async (options) => {
          const { createProvider } = await import('/index.js');
          return createProvider(options).then(() => 'it starts', ({ message }) => message);
        }, { ...BASE, upstream: `${url}/${SECRET}` });
        check('not reached from a page', new URL(url).origin, words);
        assert.ok(words.includes(`allow pages of ${page} there (CORS)`), words);
      }
    });
  } finally {
    await strict.close();
  }
});

test('an address without a scheme is refused with what to write', async () => {
  for (const [address, host] of [['127.0.0.1:14544', '127.0.0.1:14544'], ['localhost:4444/SECRET', 'localhost:4444'], ['node.example', 'node.example']]) {
    const error = await failed(address);
    assert.equal(error.code, -32600);
    assert.equal(error.message, `upstream: the address has no scheme: write http://${host} or https://${host}`);
  }
});

test('an upstream of another network is told with both chain ids', async () => {
  const chain = await createDevChain();
  try {
    const { message } = await failed(transportTo(chain), { network: 'testnet', checkpoint: { number: 1, hash: HASH } });
    check('other network', 'upstream 0', message);
    assert.match(message, /^upstream 0: it is of .*chain id 33, not 31/);
    assert.doesNotMatch((await failed(transportTo(chain))).message, /chain id/);
  } finally {
    chain.close();
  }
});

test('a node without proofs, and one that synchronizes, are told with what to do', async () => {
  const served = await serveChain(3);
  const chain = transportTo(served.chain, ['rootlight_getHeaders', 'eth_getProof', 'rsk_getProof', 'rootlight_getWitness', 'rootlight_getBlockWitness']);
  const provider = await createProvider({ ...served.options, upstream: chain, store: null });
  const address = `0x${'22'.repeat(20)}`;
  const balance = (provider) => provider.request({ method: 'eth_getBalance', params: [address, 'latest'] });
  try {
    await assert.rejects(balance(provider), ({ message }) => check('no proofs', 'upstream 0', message) ?? true);
  } finally {
    provider.close();
    await served.close();
  }
  // A light client's server, before its head is reached.
  const words = WORDS.get('synchronizing').replace('UPSTREAM', 'https://node.example').replace('…', '7');
  const refused = ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32002, message: `Resource unavailable: ${words}` } });
  const server = await listen(createServer(async (request, response) => response.end(JSON.stringify([await json(request)].flat().map(refused)))));
  try {
    const { message } = await failed(`${server.url}/${SECRET}`);
    assert.ok(message.includes(`${server.url}: `), message);
    check('synchronizing', 'https://node.example', message);
  } finally {
    await server.close();
  }
});
