// Upstreams that prove no state, as the public nodes of Rootstock: the provider says so at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { transportTo } from './lib/chain-transport.mjs';
import { lightClient } from './lib/light-client.mjs';
import { keepRunning } from './lib/running.mjs';
import { LIMIT, until } from './lib/wait.mjs';

/** Methods that stock nodes do not have. */
const PROOFS = ['rootlight_getHeaders', 'rootlight_getWitness', 'rootlight_getBlockWitness', 'eth_getProof', 'rsk_getProof'];

const WORDS = /^no upstream proves state: all are stock nodes.* blocks, transactions, receipts and logs are proven\. Add an upstream that proves state/;

/** Runs work with a client, of whose upstreams `stock` say that they lack the methods, and the messages that it emits. */
const withClient = (stock, work, more = {}) =>
  keepRunning(async () => {
    const seen = [];
    const wrap = (transport, chain) =>
      stock.map((isStock, index) => async (body) => {
        for (const { method } of [JSON.parse(body)].flat()) seen.push(`${index} ${method}`);
        return isStock ? transportTo(chain, PROOFS)(body) : transport(body);
      });
    const setup = await lightClient({ wrap, ...more });
    const told = [];
    setup.light.on('message', ({ type, data }) => type === 'rootlight_noStateProofs' && told.push(data));
    try {
      await work({ ...setup, told, seen });
    } finally {
      setup.close();
    }
  });

test('stock nodes alone: a message at once, and the error of the first balance', LIMIT, () =>
  withClient([true, true], async ({ chain, ask, light, told, options }) => {
    await until(() => told.length > 0, 'the message');
    assert.deepEqual(told[0].upstreams, ['upstream 0', 'upstream 1']);
    assert.match(told[0].message, WORDS);
    const [account] = await chain.request({ method: 'eth_accounts' });
    const events = [];
    light.on('verification', (event) => events.push(event));
    for (const [method, ...params] of [['eth_getBalance', account, 'latest'], ['eth_call', { to: account }, 'latest'], ['eth_getCode', account, 'latest']]) {
      await assert.rejects(ask(method, ...params), (error) => error.code === -32002 && WORDS.test(error.message) && /no proof of /.test(error.message), method);
    }
    await until(() => events.length === 3, 'the events of the refusals');
    assert.match(events[0].error.message, WORDS);
    // Transactions and receipts need no proof of state, so stock nodes suffice for them.
    const { transactions } = await ask('eth_getBlockByNumber', 'latest', false);
    assert.equal((await ask('eth_getTransactionReceipt', transactions[0])).transactionHash, transactions[0]);
    // Another error keeps its words.
    await assert.rejects(ask('eth_getBalance', 'x', 'latest'), ({ message }) => !WORDS.test(message));
    await light.setUpstreams(options.upstreams);
    await until(() => told.length === 2, 'the message of the new upstreams');
  }));

test('one upstream that proves state is enough', LIMIT, () =>
  withClient([true, false], async ({ chain, ask, light, told, options, seen }) => {
    await until(() => seen.some((line) => /^1 (?:eth_getProof|rootlight_getWitness)/.test(line)), 'the question for a proof');
    const [account] = await chain.request({ method: 'eth_accounts' });
    assert.equal(await ask('eth_getBalance', account, 'latest'), '0x21e19e0c9bab2400000');
    assert.deepEqual(told, []);
    await light.setUpstreams(options.upstreams[0]);
    await until(() => told.length === 1, 'the message of a stock node alone');
  }));

test('where unproven state is allowed, it is marked and no message follows', LIMIT, () =>
  withClient([true], async ({ chain, light, told }) => {
    const [account] = await chain.request({ method: 'eth_accounts' });
    const answer = await light.requestWithLevel({ method: 'eth_getBalance', params: [account, 'latest'] });
    assert.deepEqual([answer, told], [{ result: '0x21e19e0c9bab2400000', level: 'unproven' }, []]);
  }, { unproven: 'trust' }));

test('nothing is asked while no listener is there', LIMIT, () =>
  keepRunning(async () => {
    const seen = [];
    const { light, close } = await lightClient({ wrap: (transport) => (body) => (seen.push(body), transport(body)) });
    await light.request({ method: 'eth_blockNumber' });
    assert.ok(!seen.join().includes('eth_getProof'));
    close();
  }));
