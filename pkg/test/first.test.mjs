// How many round trips lie before the first proven answer: on a slow network they are nearly all of its time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { createProvider } from '../index.js';
import { transportTo } from './lib/chain-transport.mjs';
import { keepRunning } from './lib/running.mjs';
import { until } from './lib/wait.mjs';

const BLOCKS = 600;

/** Pages of 64 headers. */
const PAGES = Math.floor(BLOCKS / 64) + 1;

/** Milliseconds without another exchange after which those that wait are answered together: one round trip. */
const QUIET = 150;

/** A transport that answers in rounds, with what it was asked in each. */
function inRounds(transport) {
  const rounds = [];
  let waiting = [];
  let timer;
  const next = () => {
    const now = waiting;
    waiting = [];
    rounds.push(now.map(({ body }) => body));
    for (const { go } of now) go();
  };
  const send = async (body) => {
    clearTimeout(timer);
    await new Promise((go) => {
      waiting.push({ body, go });
      timer = setTimeout(next, QUIET);
    });
    return transport(body);
  };
  return { send, rounds };
}

/** The upstreams of the tests: one of Rootlight, and a node without its methods that proves state by `eth_getProof`. */
const NODES = { 'a Rootlight node': [], 'another node': ['rootlight_getHeaders', 'rootlight_getWitness'] };

/** Most round trips, and most exchanges, up to the first proven balance. */
const COLD = { 'a Rootlight node': [8, 8], 'another node': [8, 18] };
const WARM = { 'a Rootlight node': [3, 3], 'another node': [4, 4] };

for (const [name, without] of Object.entries(NODES)) {
  test(`round trips before the first proven balance, from ${name}`, (t) =>
    keepRunning(async () => {
      const chain = await createDevChain({ blockTime: 'manual' });
      await chain.request({ method: 'hardhat_mine', params: [`0x${BLOCKS.toString(16)}`] });
      const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
      const [rich] = await chain.request({ method: 'eth_accounts' });
      const kept = new Map();
      const storage = { get: (key) => kept.get(key), put: (key, value) => void kept.set(key, value) };
      const first = async ([most, mostExchanges], what) => {
        const { send, rounds } = inRounds(transportTo(chain, without));
        const options = { network: 'regtest', checkpoint: { number: 0, hash }, upstreams: send, storage, pollSeconds: 3_600 };
        const provider = await createProvider(options);
        assert.equal(await provider.request({ method: 'eth_getBalance', params: [rich, 'latest'] }), '0x21e19e0c9bab2400000');
        const exchanges = rounds.flat().length;
        t.diagnostic(`${what}, ${BLOCKS} blocks: ${rounds.length} round trips, ${exchanges} exchanges`);
        assert.ok(rounds.length <= most && exchanges <= mostExchanges, `${what}: ${rounds.length} round trips with ${exchanges} exchanges: ${JSON.stringify(rounds).slice(0, 2_000)}`);
        // The end mark is written last.
        await until(() => kept.size > PAGES, 'stored headers');
        provider.close();
      };
      await first(COLD[name], 'cold');
      await first(WARM[name], 'warm');
      chain.close();
    }));
}
