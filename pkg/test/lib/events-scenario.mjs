// Events of providers, the same in Node.js and in a page: of a development chain, and of a light client whose upstream
// is that chain without any service of its own.

import { transportTo } from './chain-transport.mjs';
import { keepRunning } from './running.mjs';

function must(condition, what) {
  if (!condition) throw new Error(`not as it must be: ${what}`);
}

/** What the upstream does not have. */
const WITHOUT = ['eth_subscribe', 'eth_newFilter', 'eth_newBlockFilter', 'eth_getFilterChanges', 'eth_getLogs', 'eth_gasPrice'];

/** Deploys a contract that logs 42 under topic 7 whenever it is called. */
const LOGS_42 = '0x600d80600b6000396000f3602a600052600760206000a100';

/** What a provider tells of a subscription. */
async function listen(provider, ...params) {
  const told = [];
  const subscription = await provider.request({ method: 'eth_subscribe', params });
  const listener = ({ type, data }) => {
    must(type === 'eth_subscription', 'the type of a message');
    if (data.subscription === subscription) told.push(data.result);
  };
  provider.on('message', listener);
  const until = async (count) => {
    const end = Date.now() + 20_000;
    while (told.length < count && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
    return told.splice(0);
  };
  return { subscription, listener, told, until };
}

const marks = (logs) => logs.map((log) => `${BigInt(log.blockNumber)}${log.removed ? '-' : '+'}`).join(' ');
const numbers = (heads) => heads.map((head) => BigInt(head.number)).join(' ');

/** Returns how many things were found right. */
export const scenario = (light, dev) => keepRunning(() => work(light, dev));

async function work({ connect }, { startDevChain }) {
  let right = 0;
  const check = (condition, what) => {
    must(condition, what);
    right += 1;
  };
  const chain = await startDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const [from, to] = await ask('eth_accounts');
  const send = (transaction) => ask('eth_sendTransaction', { from, gas: '0x30d40', ...transaction });
  const { contractAddress: contract } = await ask('eth_getTransactionReceipt', await send({ data: LOGS_42 }));
  const genesis = await ask('eth_getBlockByNumber', '0x0', false);
  const checkpoint = { number: 0, hash: genesis.hash, totalDifficulty: genesis.totalDifficulty };
  const upstream = transportTo(chain, WITHOUT);
  const light = await connect({ network: 'regtest', upstream, checkpoint, pollSeconds: 0.1, store: null });

  for (const [name, provider] of [['chain', chain], ['light client', light]]) {
    const reached = async () => (await provider.request({ method: 'eth_blockNumber' })) === (await ask('eth_blockNumber'));
    while (!(await reached())) await new Promise((resolve) => setTimeout(resolve, 20));
    const heads = await listen(provider, 'newHeads');
    const logs = await listen(provider, 'logs', { address: contract, topics: [`0x${'7'.padStart(64, '0')}`] });
    const first = BigInt(await ask('eth_blockNumber')) + 1n;
    const at = (...offsets) => offsets.map((offset) => first + BigInt(offset)).join(' ');
    const before = await ask('evm_snapshot');
    for (const target of [contract, to, contract]) await send({ to: target });
    check(numbers(await heads.until(3)) === at(0, 1, 2), `heads of the ${name}`);
    check(marks(await logs.until(2)) === `${first}+ ${first + 2n}+`, `logs of the ${name}`);

    // Another branch, one block longer.
    await ask('evm_revert', before);
    for (const target of [to, contract, to, contract]) await send({ to: target });
    const seen = marks(await logs.until(4));
    check(seen === `${first}- ${first + 2n}- ${first + 1n}+ ${first + 3n}+`, `a reorganisation of the ${name}: ${seen}`);
    check(numbers(await heads.until(4)) === at(0, 1, 2, 3), `heads of the new branch of the ${name}`);

    // No longer.
    const { request } = provider;
    check((await request({ method: 'eth_unsubscribe', params: [logs.subscription] })) === true, 'the end');
    check((await request({ method: 'eth_unsubscribe', params: [logs.subscription] })) === false, 'no second end');
    await send({ to: contract });
    check((await heads.until(1)).length === 1 && logs.told.length === 0, `silence after the end, ${name}`);
    provider.removeListener('message', heads.listener);
    await send({ to });
    await listen(provider, 'newHeads').then(({ until }) => send({ to }).then(() => until(1)));
    check(heads.told.length === 0, `a removed listener of the ${name}`);

    // The module forgets a subscription; it is made again.
    const lost = await listen(provider, 'newHeads');
    check((await request({ method: 'eth_uninstallFilter', params: [lost.subscription] })) === true, 'a lost subscription');
    for (const end = Date.now() + 20_000; lost.told.length === 0 && Date.now() < end; ) {
      await send({ to });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    check(lost.told.length > 0, `a subscription of the ${name} that was made again`);
  }

  const minimum = BigInt((await light.request({ method: 'eth_getBlockByNumber', params: ['latest', false] })).minimumGasPrice);
  const price = BigInt(await light.request({ method: 'eth_gasPrice', params: [] }));
  check(price === (minimum * 11n) / 10n, 'the gas price');

  for (const provider of [light, chain]) {
    let gone;
    provider.on('disconnect', ({ code }) => {
      gone = code;
    });
    provider.close();
    check(gone === 4900, 'disconnect');
  }
  return right;
}
