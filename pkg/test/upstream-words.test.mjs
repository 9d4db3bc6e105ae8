// What is told of an upstream that gives no response: which one, why, and what to do, and no more of its address than the host.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { createProvider } from '../index.js';
import { transportTo } from './lib/chain-transport.mjs';
import { listen } from './lib/upstream.mjs';

const HASH = `0x${'11'.repeat(32)}`;
const BASE = { network: 'regtest', checkpoint: { number: 0, hash: HASH }, store: null };

/** The error of a start with this upstream. */
const failed = (upstream, more) => createProvider({ ...BASE, ...more, upstream }).then(
  (provider) => {
    provider.close();
    throw new Error('it starts');
  },
  (error) => error,
);

/** A server that responds with a status. */
const answering = (status) => listen(createServer((request, response) => response.writeHead(status).end()));

test('each cause is told with the host and what to do, without the key', async () => {
  const gone = await answering(200);
  await gone.close();
  const cases = [[gone.url, /nobody listens at HOST: start the node, or check its address/]];
  const servers = [];
  for (const [status, advice] of [[401, 'check the key'], [404, 'check the path'], [500, 'ask again later']]) {
    const server = await answering(status);
    servers.push(server);
    cases.push([server.url, new RegExp(`HOST: HTTP status ${status}: ${advice}`)]);
  }
  try {
    for (const [url, words] of cases) {
      const { host } = new URL(url);
      const { message } = await failed(`${url}/SECRET-KEY-1234?key=SECRET-KEY-1234`);
      assert.match(message, new RegExp(words.source.replace('HOST', host)));
      assert.doesNotMatch(message, /SECRET/);
    }
  } finally {
    await Promise.all(servers.map(({ close }) => close()));
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
    assert.match(message, /upstream 0 is of the network with chain id 33, not 31: give an upstream of the network/);
    assert.doesNotMatch((await failed(transportTo(chain))).message, /chain id/);
  } finally {
    chain.close();
  }
});
