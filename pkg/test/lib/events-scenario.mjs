// Events of providers, in Node.js and in a page: of a development chain, and of a light client whose upstream is that chain without subscriptions and
// filters.

import { transportTo } from './chain-transport.mjs';
import { countedChecks, must } from './checks.mjs';
import { keepRunning } from './running.mjs';
import { until } from './wait.mjs';

/** Methods that the upstream does not have. */
const WITHOUT = ['eth_subscribe', 'eth_newFilter', 'eth_newBlockFilter', 'eth_getFilterChanges', 'eth_getLogs', 'eth_gasPrice'];

/** Deploys a contract that logs 42 under topic 7 whenever it is called. */
const LOGS_42 = '0x600d80600b6000396000f3602a600052600760206000a100';

/** Subscribes and collects the events of the subscription. */
async function listen(provider, ...params) {
  const told = [];
  const subscription = await provider.request({ method: 'eth_subscribe', params });
  const gaps = [];
  const listener = ({ type, data }) => {
    must(['eth_subscription', 'rootlight_gap'].includes(type), 'the type of a message');
    if (data.subscription !== subscription) return;
    if (type === 'rootlight_gap') gaps.push(data);
    else told.push(data.result);
  };
  provider.on('message', listener);
  const next = async (count) => {
    await until(() => told.length >= count, `${count} notifications`);
    return told.splice(0);
  };
  return { subscription, listener, told, gaps, next };
}

const marks = (logs) => logs.map((log) => `${BigInt(log.blockNumber)}${log.removed ? '-' : '+'}`).join(' ');
const numbers = (heads) => heads.map((head) => BigInt(head.number)).join(' ');

/** Returns how many checks passed. */
export const scenario = (light, dev) => keepRunning(() => work(light, dev));

async function work({ createProvider }, { createDevChain }) {
  const check = countedChecks();
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const [from, to] = await ask('eth_accounts');
  const send = (transaction) => ask('eth_sendTransaction', { from, gas: '0x30d40', ...transaction });
  const { contractAddress: contract } = await ask('eth_getTransactionReceipt', await send({ data: LOGS_42 }));
  const genesis = await ask('eth_getBlockByNumber', '0x0', false);
  const checkpoint = { number: 0, hash: genesis.hash, totalDifficulty: genesis.totalDifficulty };
  const upstream = transportTo(chain, WITHOUT);
  const light = await createProvider({ network: 'regtest', upstream, checkpoint, pollSeconds: 0.1, store: null });

  for (const [name, provider] of [['chain', chain], ['light client', light]]) {
    const reached = async () => (await provider.request({ method: 'eth_blockNumber' })) === (await ask('eth_blockNumber'));
    await until(reached, `the head of the ${name}`);
    const heads = await listen(provider, 'newHeads');
    const logs = await listen(provider, 'logs', { address: contract, topics: [`0x${'7'.padStart(64, '0')}`] });
    const first = BigInt(await ask('eth_blockNumber')) + 1n;
    const at = (...offsets) => offsets.map((offset) => first + BigInt(offset)).join(' ');
    const before = await ask('evm_snapshot');
    for (const target of [contract, to, contract]) await send({ to: target });
    check(numbers(await heads.next(3)) === at(0, 1, 2), `heads of the ${name}`);
    check(marks(await logs.next(2)) === `${first}+ ${first + 2n}+`, `logs of the ${name}`);

    // Another branch, one block longer.
    await ask('evm_revert', before);
    for (const target of [to, contract, to, contract]) await send({ to: target });
    const seen = marks(await logs.next(4));
    check(seen === `${first}- ${first + 2n}- ${first + 1n}+ ${first + 3n}+`, `a reorganisation of the ${name}: ${seen}`);
    check(numbers(await heads.next(4)) === at(0, 1, 2, 3), `heads of the new branch of the ${name}`);

    // Unsubscribe.
    const { request } = provider;
    check((await request({ method: 'eth_unsubscribe', params: [logs.subscription] })) === true, 'the end');
    check((await request({ method: 'eth_unsubscribe', params: [logs.subscription] })) === false, 'no second end');
    await send({ to: contract });
    check((await heads.next(1)).length === 1 && logs.told.length === 0, `silence after the end, ${name}`);
    provider.removeListener('message', heads.listener);
    await send({ to });
    await listen(provider, 'newHeads').then(({ next }) => send({ to }).then(() => next(1)));
    check(heads.told.length === 0, `a removed listener of the ${name}`);

    // The module drops a subscription, and it is renewed.
    await until(reached, `the head of the ${name} again`);
    const lost = await listen(provider, 'newHeads');
    const known = BigInt(await provider.request({ method: 'eth_blockNumber' }));
    check((await request({ method: 'eth_uninstallFilter', params: [lost.subscription] })) === true, 'a lost subscription');
    const told = async () => {
      await send({ to });
      return lost.told.length > 0;
    };
    check(await until(told, 'a notification', { every: 50 }), `a subscription of the ${name} that was made again`);
    // Each block since then was emitted, or reported as missing.
    const [{ fromBlock, toBlock }] = lost.gaps;
    const whole = BigInt(fromBlock) === known + 1n && BigInt(lost.told[0].number) <= BigInt(toBlock) + 1n;
    check(lost.gaps.length === 1 && whole, `the gap of the ${name}: ${fromBlock} to ${toBlock}, then ${lost.told[0].number}`);
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
  return check.passed;
}

/** Subscriptions while something else fails. Returns how many checks passed. */
export const faults = (light, dev) => keepRunning(() => faultWork(light, dev));

const failureOf = (promise) => promise.then(() => ({}), (error) => error);

async function faultWork({ createProvider }, { createDevChain }) {
  const check = countedChecks();
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const [from] = await ask('eth_accounts');
  const log = () => ask('eth_sendTransaction', { from, data: '0x602a60005260206000a0', gas: '0x30d40' });
  const { hash } = await ask('eth_getBlockByNumber', '0x0', false);
  const plain = transportTo(chain, WITHOUT);
  let stuck = false;
  const upstream = (body) => (stuck && /receipt/i.test(body) ? new Promise(() => {}) : plain(body));
  const options = { network: 'regtest', upstream, checkpoint: { number: 0, hash }, pollSeconds: 0.1, store: null };
  const light = await createProvider(options);

  // Receipts that never arrive block the logs, and requests that need them; heads continue.
  const logs = await listen(light, 'logs', {});
  const heads = await listen(light, 'newHeads');
  stuck = true;
  const hash_ = await log();
  const hanging = Array.from({ length: 8 }, () => failureOf(light.request({ method: 'eth_getTransactionReceipt', params: [hash_] })));
  check((await heads.next(1)).length === 1, 'a head beside logs that hang');
  await log();
  check((await heads.next(1)).length === 1, 'another one');
  check(logs.told.length === 0, 'logs without proof');

  // All pending calls are rejected at the end.
  const subscribing = failureOf(light.request({ method: 'eth_subscribe', params: ['newHeads'] }));
  const intervals = counted();
  light.close();
  check((await subscribing).code === 4900, 'a subscription that was on its way');
  check((await Promise.all(hanging)).every(({ code }) => code === 4900), 'questions that were on their way');
  check(intervals.stop() === 0, 'nothing is looked for after the end');

  for (const [name, provider] of [['light client', await createProvider({ ...options, upstream: plain })], ['chain', chain]]) {
    const odd = { address: () => {} };
    const refused = await failureOf(provider.request({ method: 'eth_subscribe', params: ['logs', odd] }));
    check(refused.code === -32602, `parameters that the ${name} cannot copy: ${refused.message}`);
    const closing = counted();
    const late = failureOf(provider.request({ method: 'eth_subscribe', params: ['newHeads'] }));
    if (name === 'light client') provider.close();
    else check((await late).code === undefined, 'a subscription');
    if (name === 'light client') check((await late).code === 4900, 'a subscription while closing');
    check(closing.stop() === (name === 'chain' ? 1 : 0), `timers of the ${name}`);
  }

  // No call waits forever for the head.
  const never = { ...options, upstream: () => new Promise(() => {}) };
  const abort = new AbortController();
  const aborted = failureOf(createProvider({ ...never, signal: abort.signal }));
  abort.abort(new Error('enough'));
  check((await aborted).message === 'enough', 'an aborted connection');
  const late = await failureOf(createProvider({ ...never, timeout: 50 }));
  check(late.code === 4900 && /within 50 ms/.test(late.message), 'a connection that takes too long');
  chain.close();
  return check.passed;
}

/** Counts running intervals; `stop` returns their number. */
function counted() {
  const { clearInterval, setInterval } = globalThis;
  const running = new Set();
  globalThis.setInterval = (work, time, ...rest) => {
    const timer = setInterval(work, time, ...rest);
    // Ignores the intervals that only keep a program running.
    if (time < 1e6) running.add(timer);
    return timer;
  };
  globalThis.clearInterval = (timer) => {
    running.delete(timer);
    clearInterval(timer);
  };
  return {
    stop: () => {
      Object.assign(globalThis, { clearInterval, setInterval });
      return running.size;
    },
  };
}
