// balanceOf of an ERC-20 token through the package's provider in Node.js, on proven state that is known already: calls a second on the
// thread that calls and in a worker, beside @ethereumjs/evm on the same calls. Other builds of the package are measured in the same run:
//
//   ROOTLIGHT_TOKEN=.. node calls.mjs [FOLDER OF ANOTHER PACKAGE..]
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createDevChain } from '../../pkg/dev.js';
import { serveChain } from '../../pkg/test/lib/chain-server.mjs';

/** Rounds; the first warms up and does not count. */
const ROUNDS = 8;
/** Milliseconds that a measurement should take. */
const LENGTH = 400;
const HOLDERS = 64;
/** Calls of the token in one message, to measure the machines alone. */
const INNER = 200;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const word = (value) => BigInt(value).toString(16).padStart(64, '0');
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** A process that obeys one order after another. */
async function start(script, ...args) {
  const child = fork(here(script), args);
  const order = (order, what) =>
    new Promise((resolve, reject) => {
      const gone = () => reject(new Error(`${script} ended`));
      child.once('exit', gone);
      child.once('message', ({ value, error }) => {
        child.off('exit', gone);
        if (error) reject(new Error(error));
        else resolve(value);
      });
      child.send({ order, what });
    });
  return { order, stop: () => child.send({ order: 'close' }) };
}

/** Code that calls a contract {@link INNER} times with some data of 36 bytes, and returns the last result. */
function loop(to, data) {
  const [first, rest] = [data.slice(2, 66), data.slice(66).padEnd(64, '0')];
  const setup = `7f${first}600052` + `7f${rest}602052` + `61${INNER.toString(16).padStart(4, '0')}`;
  const start = (setup.length / 2).toString(16).padStart(4, '0');
  const call = `60206040602460007f${to.slice(2).padStart(64, '0')}5afa50`;
  return `0x${setup}5b${call}600190038061${start}5760206040f3`;
}

/** The token with its holders on the chain, and the same as data for another machine. */
async function setup(ask) {
  const token = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));
  const selector = async (signature) => (await ask('web3_sha3', `0x${Buffer.from(signature).toString('hex')}`)).slice(0, 10);
  const [transfer, balanceOf] = [await selector('transfer(address,uint256)'), await selector('balanceOf(address)')];
  const [from] = await ask('eth_accounts');
  const creation = `${token.bytecode}${word(0x40)}${word(10n ** 24n)}${word(4)}${Buffer.from('Test').toString('hex').padEnd(64, '0')}`;
  const hash = await ask('eth_sendTransaction', { from, data: creation, gas: '0x2dc6c0' });
  const { contractAddress: to } = await ask('eth_getTransactionReceipt', hash);
  const holders = Array.from({ length: HOLDERS }, (_, at) => `0x${(at + 1).toString(16).padStart(2, '0').repeat(20)}`);
  const transfers = holders.map((holder, at) => ({ from, to, data: `${transfer}${word(holder)}${word(at + 7)}` }));
  for (const message of transfers) await ask('eth_sendTransaction', { ...message, gas: '0x30000' });
  const calls = holders.map((holder, at) => ({ call: { to, data: `${balanceOf}${word(holder)}` }, result: `0x${word(at + 7)}` }));
  const [{ call, result }] = calls;
  return { creation, transfers, calls, inner: { call: { data: loop(to, call.data) }, result } };
}

const { chain, options, ask, close } = await serveChain(0, undefined, undefined, { blockTime: undefined });
const subjects = [];
try {
  const { creation, transfers, calls, inner } = await setup(ask);
  const scripts = [here('../../pkg'), ...process.argv.slice(2)].map((folder) => ['modules/calls.mjs', folder]);
  scripts.push(['modules/ethereumjs.mjs', '@ethereumjs/evm']);
  for (const [script, name] of scripts) {
    const { order, stop } = await start(script, name);
    const ways = await order('open', { options, creation, transfers, calls });
    for (const way of ways) subjects.push({ name, way, order, stop, calls, size: 1, count: 200, rates: [] });
    const [way] = ways;
    subjects.push({ name, way, shown: 'the machine alone', order, stop, calls: [inner], size: INNER, count: 2, rates: [] });
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const subject of subjects) {
      const { order, way, rates, count, size, calls: list } = subject;
      const time = await order('time', { way, calls: list, count });
      if (round > 0) rates.push(((count * size) / time) * 1_000);
      subject.count = Math.max(2, Math.round((count / time) * LENGTH));
    }
  }
  for (const { name, way, shown = way, size, rates } of subjects) {
    // The same of the first package; its first way for another machine.
    const first = subjects.find((other) => other.size === size && (other.shown ?? other.way) === shown) ?? subjects[0];
    const other = name.startsWith('@') ? subjects.find((it) => it.size === size) : first;
    const ratio = median(rates.map((rate, round) => rate / other.rates[round]));
    const beside = `${Math.round(Math.min(...rates))} to ${Math.round(Math.max(...rates))}`;
    console.log(`${name}, ${shown}: ${Math.round(median(rates))} calls/s (${beside}), ${ratio.toFixed(3)} times the first package`);
  }
} finally {
  for (const { stop } of subjects) stop();
  await close();
  chain.close();
}
