// Several upstreams, transactions sent through the light client, and answers that no upstream proves; in Node.js and in a page.
import { transportTo } from './chain-transport.mjs';
import { countedChecks } from './checks.mjs';
import { keepRunning } from './running.mjs';
import { until } from './wait.mjs';

/** Methods that prove state. */
const PROOFS = ['eth_getProof', 'rootlight_getWitness', 'rsk_getProof'];

async function failureOf(promise) {
  return promise.then(
    (value) => {
      throw new Error(`there is an answer: ${JSON.stringify(value)}`);
    },
    (error) => error,
  );
}

/** Returns how many checks passed. */
export const scenario = (light, dev) => keepRunning(() => work(light, dev));

async function work({ createProvider }, { createDevChain }) {
  const check = countedChecks();
  const chain = await createDevChain({ blockTime: 'manual' });
  const ask = (method, ...params) => chain.request({ method, params });
  for (let block = 0; block < 5; block += 1) await ask('evm_mine');
  const [from, to] = await ask('eth_accounts');
  const genesis = await ask('eth_getBlockByNumber', '0x0', false);
  const checkpoint = { number: 0, hash: genesis.hash, totalDifficulty: genesis.totalDifficulty };
  const common = { network: 'regtest', checkpoint, pollSeconds: 0.1, store: null };

  // A node that is down does not matter if another one responds.
  const down = async () => {
    throw new Error('connection refused');
  };
  const progress = [];
  const upstream = [down, transportTo(chain)];
  const light = await createProvider({ ...common, upstream, onProgress: (figures) => progress.push(figures) });
  const request = (method, ...params) => light.request({ method, params });
  check((await request('eth_blockNumber')) === '0x5', 'the head beside a node that is down');
  check(progress.length > 0 && progress.every((at) => at.startingBlock === 0 && at.currentBlock <= 5), 'progress');

  // A sent transaction is pending until a block includes it; then it is proven.
  const signed = await ask('eth_signTransaction', { from, to, value: '0x1', gas: '0x5208' });
  const raw = signed.raw ?? signed;
  const hash = await request('eth_sendRawTransaction', raw);
  check((await request('eth_getTransactionByHash', hash)).blockHash === null, 'a transaction that waits');
  check((await request('eth_getTransactionCount', from, 'pending')) === '0x1', 'the nonce after it');
  check((await request('eth_getTransactionCount', from, 'latest')) === '0x0', 'the nonce before it');
  check((await ask('eth_getTransactionByHash', hash)).hash === hash, 'the upstream has it');
  await ask('evm_mine');
  await until(async () => (await request('eth_blockNumber')) === '0x6', 'block 6');
  check((await request('eth_getTransactionReceipt', hash)).blockNumber === '0x6', 'its receipt');
  check((await failureOf(request('eth_sendRawTransaction', '0xc0'))).code === -32602, 'bytes that are no transaction');
  check((await failureOf(request('eth_sendRawTransaction', raw))).message.length > 0, 'a nonce that is used');

  // Answers that no upstream proves.
  const mute = transportTo(chain, PROOFS);
  const liar = async (body) => {
    const lie = new TextDecoder().decode(await mute(body)).replaceAll(/"result":"0x21e[0-9a-f]+"/g, '"result":"0x7"');
    return new TextEncoder().encode(lie);
  };
  const balance = await ask('eth_getBalance', to, '0x6');
  const answers = async (unproven, ...upstream) => {
    const provider = await createProvider({ ...common, upstream, unproven });
    const asked = provider.request({ method: 'eth_getBalance', params: [to, '0x6'] });
    return asked.catch((error) => error.code).finally(() => provider.close());
  };
  check(typeof (await answers('refuse', mute)) === 'number', 'refused without a proof');
  check((await answers('trust', mute)) === balance, 'trusted');
  check((await answers('quorum:2', mute, mute)) === balance, 'agreed upon');
  check(typeof (await answers('quorum:2', mute, liar)) === 'number', 'not agreed upon');
  check((await answers('quorum:2', mute, liar, mute)) === balance, 'agreed upon by two of three');
  const few = await failureOf(createProvider({ ...common, upstream: mute, unproven: 'quorum:2' }));
  check(/needs 2 upstreams, 1 given/.test(few.message), 'too few for a quorum');
  const odd = await failureOf(createProvider({ ...common, upstream: mute, unproven: 'maybe' }));
  check(/neither refuse, quorum:N nor trust/.test(odd.message), 'no such policy');

  // Blocks with too few blocks on top.
  const deep = await createProvider({ ...common, upstream: mute, minDepth: 2 });
  const head = deep.request({ method: 'eth_getBlockByNumber', params: ['0x5', false] });
  check((await failureOf(head)).code < 0, 'too new');
  check((await deep.request({ method: 'eth_getBlockByNumber', params: ['0x4', false] })).number === '0x4', 'deep enough');

  for (const provider of [deep, light, chain]) provider.close();
  return check.passed;
}
