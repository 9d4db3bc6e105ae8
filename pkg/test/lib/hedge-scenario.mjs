// An upstream that hangs on proofs beside one that answers; in Node.js and in a page, on its thread and in a worker.
import { transportTo } from './chain-transport.mjs';
import { keepRunning } from './running.mjs';
import { pause } from './wait.mjs';

/** Methods that prove state. */
const PROOFS = /eth_getProof|rootlight_getWitness|rsk_getProof/;

/** Milliseconds after which an exchange that hangs fails, and the next upstream is asked in any case. */
const HANGS = 8_000;

/** Accounts whose balances are asked for, one after the other. */
const ACCOUNTS = 12;

/** Returns how many balances were proven before an exchange that hangs had ended, and the most exchanges that hung at the same time. */
export const scenario = (light, dev, worker) => keepRunning(() => work(light, dev, worker));

async function work({ createProvider }, { createDevChain }, worker) {
  const chain = await createDevChain();
  const { hash, totalDifficulty } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const answering = transportTo(chain);
  let hanging = 0;
  let most = 0;
  let ended = 0;
  const hangs = async (body) => {
    if (!PROOFS.test(body)) return answering(body);
    hanging += 1;
    most = Math.max(most, hanging);
    await pause(HANGS);
    hanging -= 1;
    ended += 1;
    throw new Error('no response');
  };
  const upstream = [hangs, answering];
  const light = await createProvider({ network: 'regtest', checkpoint: { number: 0, hash, totalDifficulty }, store: null, upstream, worker });
  let proven = 0;
  try {
    for (let account = 1; account <= ACCOUNTS; account += 1) {
      const params = [`0x${account.toString(16).padStart(40, '0')}`, 'latest'];
      const balance = await light.request({ method: 'eth_getBalance', params });
      if (balance === '0x0' && ended === 0) proven += 1;
    }
  } finally {
    light.close();
    chain.close();
  }
  return { proven, most };
}
