// Chains on a block of another development chain, in Node.js, in a worker thread and in a page. The other chain is one of the package.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { serveChain } from './lib/chain-server.mjs';
import { transportTo } from './lib/chain-transport.mjs';
import { CHECKS, forkScenario, prepare, stockNode } from './lib/fork-scenario.mjs';
import { inPage } from './lib/in-page.mjs';

/** Methods that a stock public node does not have. */
const PROOFS = ['eth_getProof', 'rsk_getProof', 'rootlight_getWitness', 'rootlight_getHeaders'];

/** Serves a prepared chain. */
async function network() {
  const served = await serveChain(0, undefined, undefined, { blockTime: 0 });
  await prepare(served.ask);
  return served;
}

test('a fork reads the network and changes its own state', async () => {
  const served = await network();
  try {
    assert.equal(await forkScenario({ createDevChain }, served), CHECKS);
  } finally {
    await served.close();
  }
});

test('a fork in a page', async () => {
  const served = await network();
  const work = async (url) => {
    const { forkScenario } = await import('/test/lib/fork-scenario.mjs');
    const { httpTransport, ...module } = await import('/dev.js');
    const transport = httpTransport(url);
    const ask = async (method, ...params) => JSON.parse(new TextDecoder().decode(await transport(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })))).result;
    return forkScenario(module, { url, ask });
  };
  try {
    assert.equal(await inPage((run) => run(work, served.url)), CHECKS);
  } finally {
    await served.close();
  }
});

test('a fork in a worker thread', async () => {
  const served = await network();
  const chain = await createDevChain({ fork: { url: served.url, block: 10 }, worker: 'dedicated' });
  assert.equal(await chain.request({ method: 'eth_blockNumber' }), '0xa');
  chain.close();
  await served.close();
  await assert.rejects(createDevChain({ fork: { url: async () => new Uint8Array(0) }, worker: 'dedicated' }), /`fork.url` is a function of yours/);
});

test('a node without proofs is refused unless that is wanted, and one that dies changes nothing', async () => {
  const served = await network();
  let isBroken = false;
  const node = transportTo(served.chain, PROOFS);
  const transport = (body) => (isBroken ? Promise.reject(new Error('nobody is there')) : node(body));
  try {
    assert.equal(await stockNode({ createDevChain }, { transport, broken: (whether) => (isBroken = whether) }), 5);
  } finally {
    await served.close();
  }
});

test('a node that turns to another network is told with both chain ids, and gives nothing', async () => {
  const [served, other] = await Promise.all([network(), createDevChain({ blockTime: 0, genesisTime: 6 })]);
  const [former, turned] = [transportTo(served.chain), transportTo(other)];
  let hasTurned = false;
  const transport = async (body) => {
    if (!hasTurned) return former(body);
    return new TextEncoder().encode(new TextDecoder().decode(await turned(body)).replace('"result":"0x21"', '"result":"0x1f"'));
  };
  const chain = await createDevChain({ fork: { url: transport, unproven: 'trust' } });
  try {
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    hasTurned = true;
    const unread = ['eth_getBalance', ['0x00000000000000000000000000000000000000bb', 'latest']];
    const absent = ['eth_getTransactionByHash', [`0x${'11'.repeat(32)}`]];
    for (const [method, params] of [unread, absent, ['hardhat_reset', [{ forking: {} }]]]) {
      await assert.rejects(chain.request({ method, params }), ({ code, message }) => {
        assert.match(message, /it is of the network with chain id 31, not 33: use an upstream of the expected network/, method);
        return code === -32002;
      });
    }
    hasTurned = false;
    assert.equal(await chain.request({ method: unread[0], params: unread[1] }), '0x0');
  } finally {
    chain.close();
    other.close();
    await served.close();
  }
});

test('a chain that mines by the clock on a fork mines', async () => {
  const served = await network();
  const chain = await createDevChain({ fork: { url: served.url }, blockTime: 1 });
  const numbers = [];
  try {
    await new Promise((resolve) => {
      chain.on('message', ({ data }) => numbers.push(data.result.number) && resolve());
      void chain.request({ method: 'eth_subscribe', params: ['newHeads'] });
    });
    assert.equal(Number(numbers[0]), Number(await served.ask('eth_blockNumber')) + 1);
  } finally {
    chain.close();
    await served.close();
  }
});

test('options of a chain that cannot be meant are told by name', async () => {
  for (const [options, message] of [
    [{ fork: 'http://127.0.0.1:1/' }, 'fork: give an object, {url}'],
    [{ fork: { url: '127.0.0.1:4444' } }, 'upstream: the address has no scheme: write http://127.0.0.1:4444 or https://127.0.0.1:4444'],
    [{ mnemonic: 'one two' }, 'mnemonic: this has 2 words, a mnemonic has 12, 15, 18, 21 or 24'],
  ]) {
    await assert.rejects(createDevChain(options), { code: -32600, message });
  }
});
