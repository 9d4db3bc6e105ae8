// A development chain that begins anew, and a server that turns to another network, while the client runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { createProvider } from '../index.js';
import { transportTo } from './lib/chain-transport.mjs';
import { checkWords } from './lib/documented.mjs';
import { keepRunning } from './lib/running.mjs';
import { LIMIT, until } from './lib/wait.mjs';

/** A chain whose block 0 has this time, with some blocks. */
async function chainOf(genesisTime, blocks) {
  const chain = await createDevChain({ blockTime: 'manual', genesisTime });
  await mine(chain, blocks);
  return chain;
}

const mine = (chain, blocks) => (blocks > 0 ? chain.request({ method: 'hardhat_mine', params: [`0x${blocks.toString(16)}`] }) : undefined);
const head = (provider) => provider.request({ method: 'eth_getBlockByNumber', params: ['latest', false] }).catch(() => undefined);

/** Waits until the newest block of a client is the chain's. */
async function follows(light, chain) {
  const { hash, number } = await head(chain);
  await until(async () => (await head(light))?.hash === hash, `block ${Number(number)} of the chain`);
}

/** Runs work with an address at which chains take each other's place. `answer(body, transport)` may answer in a chain's place. */
const atAddress = (work, answer = (body, transport) => transport(body)) =>
  keepRunning(async () => {
    const chains = [];
    let transport;
    const serve = (chain) => {
      chains.push(chain);
      transport = transportTo(chain);
    };
    try {
      await work(serve, (body) => answer(body, transport));
    } finally {
      for (const chain of chains) chain.close();
    }
  });

const CLIENT = { network: 'regtest', pollSeconds: 0.1, storage: null };

test('a development chain that begins anew is followed from there, and subscribers are told', LIMIT, () =>
  atAddress(async (serve, upstream) => {
    const first = await chainOf(5, 3);
    serve(first);
    const light = await createProvider({ ...CLIENT, upstream });
    const [told, heads] = [[], []];
    light.on('disconnect', ({ code, message }) => told.push([code, message]));
    light.on('message', ({ type, data }) => type === 'eth_subscription' && heads.push(data.result.hash));
    await light.request({ method: 'eth_subscribe', params: ['newHeads'] });
    for (const [at, blocks] of [0, 3].entries()) {
      const next = await chainOf(6 + at, blocks);
      serve(next);
      await follows(light, next);
      await until(() => told.length > at, 'the event');
      const { hash } = await next.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
      assert.deepEqual(told[at], [1013, `no upstream answers: upstream 0: the chain has begun anew, with block 0 ${hash}; this client follows it from there`]);
      assert.equal((await light.request({ method: 'rootlight_checkpoint', params: [] })).hash, hash);
      // The subscription may be made again a moment later.
      await until(async () => {
        await mine(next, 1);
        await follows(light, next);
        return heads.includes((await head(next)).hash);
      }, 'a new block of the new chain');
    }
    light.close();
  }));

test('a development chain that goes back to an earlier block is followed', LIMIT, () =>
  atAddress(async (serve, upstream) => {
    const chain = await chainOf(5, 1);
    serve(chain);
    const snapshot = await chain.request({ method: 'evm_snapshot', params: [] });
    await mine(chain, 3);
    const light = await createProvider({ ...CLIENT, upstream });
    await follows(light, chain);
    await chain.request({ method: 'evm_revert', params: [snapshot] });
    assert.equal((await head(chain)).number, '0x1');
    await follows(light, chain);
    light.close();
  }));

test('a start that the caller names is never left', LIMIT, () =>
  atAddress(async (serve, upstream) => {
    const former = await chainOf(5, 2);
    serve(former);
    const { hash } = await former.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
    const [named, shown] = await Promise.all([createProvider({ ...CLIENT, upstream, checkpoint: { number: 0, hash }, maxAge: 0 }), createProvider({ ...CLIENT, upstream })]);
    const next = await chainOf(6, 1);
    serve(next);
    await follows(shown, next);
    const { blockHash } = await named.request({ method: 'rootlight_verification', params: ['latest'] });
    assert.equal(blockHash, (await head(former)).hash);
    named.close();
    shown.close();
  }));

test('a server that turns to another network is told with both ids, and connects again when it is back', LIMIT, async () => {
  const first = await chainOf(5, 0);
  const { hash } = await head(first);
  first.close();
  for (const start of [{}, { checkpoint: { number: 0, hash }, maxAge: 0 }]) {
    let isForeign = false;
    // The answers of a node of the main network: its chain id, and no block that is known here.
    const foreign = (body) => {
      const one = ({ id, method }) => ({ jsonrpc: '2.0', id, result: { eth_chainId: '0x1e', eth_blockNumber: '0x895440' }[method] ?? null });
      const asked = JSON.parse(body);
      return new TextEncoder().encode(JSON.stringify(Array.isArray(asked) ? asked.map(one) : one(asked)));
    };
    await atAddress(async (serve, upstream) => {
      const chain = await chainOf(5, 2);
      serve(chain);
      const light = await createProvider({ ...CLIENT, ...start, upstream });
      const told = [];
      light.on('disconnect', ({ code, message }) => told.push([code, message]));
      light.on('connect', ({ chainId }) => told.push(['connect', chainId]));
      await until(() => told.length === 1, 'the first connect');
      isForeign = true;
      await until(() => told.length === 2, 'disconnect');
      const [code, message] = told[1];
      assert.equal(code, 1013);
      checkWords('other network', 'upstream 0', message);
      assert.match(message, /chain id 30, not 33/);
      const balance = light.request({ method: 'eth_getBalance', params: [`0x${'22'.repeat(20)}`, 'latest'] });
      await assert.rejects(balance, /chain id 30, not 33: use an upstream of the expected network/);
      isForeign = false;
      await mine(chain, 1);
      await until(() => told.length === 3, 'connect');
      assert.deepEqual(told[2], ['connect', '0x21']);
      await follows(light, chain);
      light.close();
    }, (body, transport) => (isForeign ? foreign(body) : transport(body)));
  }
});
