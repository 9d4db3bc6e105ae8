// A client that trusts no block, in Node.js and in a page.
import { transportTo } from './chain-transport.mjs';
import { later } from './clock.mjs';
import { keepRunning } from './running.mjs';
import { until } from './wait.mjs';

/** Seconds between blocks: 58 headers span a day, without a gap of more than half an hour. */
const SPACING = 1_500;

/** Number of headers above the block at which the chain starts. */
export const HEADERS = 58;

/** Number of blocks of the chain. */
export const BLOCKS = 70;

/** A network for these tests. Development chains mine at difficulty 1 and their blocks may have any time, so their work proves nothing elsewhere. */
export const NETWORK = {
  name: 'by-work',
  base: 'regtest',
  params: { futureBound: 60 },
  // Without RSKIP-97 the rules let difficulty fall to the minimum after ten minutes without a block.
  rules: { rskip97: 0 },
  workStart: { difficulty: 1, from: 0, headers: HEADERS },
};

const hexadecimal = (number) => `0x${number.toString(16)}`;

/** Runs some work in which no interval passes, such as the one at which providers poll subscriptions. */
async function withoutIntervals(work) {
  const { setInterval } = globalThis;
  globalThis.setInterval = (callback, _, ...rest) => setInterval(callback, 2 ** 31 - 1, ...rest);
  try {
    return await work();
  } finally {
    globalThis.setInterval = setInterval;
  }
}

/** Makes a chain of a day and some hours, and runs work with it at the time of its newest block. */
async function withChain({ createDevChain }, work) {
  const chain = await createDevChain({ blockTime: 'manual' });
  try {
    await chain.request({ method: 'hardhat_mine', params: [hexadecimal(BLOCKS), hexadecimal(SPACING)] });
    const { timestamp } = await chain.request({ method: 'eth_getBlockByNumber', params: ['latest', false] });
    const ahead = Math.ceil(Number(timestamp) - Date.now() / 1_000);
    return await later(ahead, () => keepRunning(() => work(chain)));
  } finally {
    chain.close();
  }
}

const optionsFor = (chain, more) => ({
  network: NETWORK,
  checkpoint: 'work',
  minWork: 1,
  pollSeconds: 0.1,
  upstream: transportTo(chain),
  ...more,
});

/** A start by work and a later block, with the answers and events about them. */
export async function byWork({ createProvider }, dev) {
  return withChain(dev, async (chain) => {
    const progress = [];
    const provider = await createProvider(optionsFor(chain, { onProgress: (told) => progress.push(told) }));
    const ask = (method, ...params) => provider.requestWithLevel({ method, params });
    try {
      const [height, chainId] = [await ask('eth_blockNumber'), await ask('eth_chainId')];
      const status = await ask('rootlight_syncStatus');
      const proofs = [];
      for (const number of [BLOCKS, BLOCKS - 9, BLOCKS - HEADERS]) proofs.push(await ask('rootlight_verification', hexadecimal(number)));
      const told = [];
      provider.on('message', ({ data }) => told.push(data));
      // The event follows the module's hint, not a poll.
      await withoutIntervals(async () => {
        await ask('eth_subscribe', 'newHeads');
        // The chain's own clock is ahead of this one by the same amount again.
        const { timestamp } = await chain.request({ method: 'eth_getBlockByNumber', params: ['latest', false] });
        await chain.request({ method: 'evm_setNextBlockTimestamp', params: [hexadecimal(Number(timestamp) + 1)] });
        await chain.request({ method: 'evm_mine' });
        await until(() => told.length > 0, 'the event of a block');
      });
      const event = { start: told[0].start, number: told[0].result.number };
      return { progress, height, chainId, status, proofs, event };
    } finally {
      provider.close();
    }
  });
}

/** A store must be neither read nor written. */
export async function withStore({ createProvider }, dev) {
  return withChain(dev, async (chain) => {
    const touched = [];
    const store = { get: (key) => void touched.push(key), put: (key) => void touched.push(key) };
    for (const more of [{ store }, {}]) {
      const provider = await createProvider(optionsFor(chain, more));
      await provider.request({ method: 'eth_blockNumber' });
      provider.close();
    }
    const databases = (await globalThis.indexedDB?.databases()) ?? [];
    return { touched, databases };
  });
}

const reasonOf = (promise) => promise.then((provider) => (provider.close(), 'connected'), ({ message }) => message);

/** The reasons for which clients do not start. */
export async function refusals({ createProvider }, dev, published) {
  const upstream = async () => new Uint8Array(0);
  // On this thread, whose clock `later` sets.
  const place = (from) => from === published && { worker: false };
  const simple = (options, from = published) => reasonOf(from.createProvider({ upstream, store: null, ...place(from), ...options }));
  const year = 365 * 86_400;
  return withChain(dev, async (chain) => {
    const started = (more) => reasonOf(createProvider(optionsFor(chain, { store: null, ...more })));
    const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
    const genesis = { number: 0, hash };
    const workStart = { ...NETWORK.workStart, difficulty: 100 };
    return {
      testnet: await simple({ network: 'testnet', checkpoint: 'work' }),
      regtest: await simple({ network: 'regtest', checkpoint: 'work' }),
      window: await simple({ network: 'testnet', checkpoint: 'window' }),
      floor: await simple({ network: 'mainnet', checkpoint: 'work', minWork: 0 }),
      floorOfWindow: await simple({ network: 'mainnet', checkpoint: 'window', minWork: 0 }),
      form: await simple({ network: 'mainnet', checkpoint: 'newest' }),
      file: await simple({ network: { name: 'x', rules: { rskip1: 0 } } }, { createProvider }),
      object: await simple({ network: NETWORK }),
      besideAChain: await simple({ network: 'testnet', checkpoint: 'work' }, dev),
      age: await later(2 * year, () => simple({ network: 'mainnet', checkpoint: 'built-in' })),
      ageWithoutFloor: await later(2 * year, () => simple({ network: 'mainnet', minWork: 0 })),
      ageOnTestnet: await later(2 * year, () => simple({ network: 'testnet' })),
      light: await started({ network: { ...NETWORK, workStart } }),
      floorOfWork: await started({ minWork: 50 }),
      short: await started({ network: { ...NETWORK, workStart: { ...NETWORK.workStart, headers: BLOCKS + 1 } } }),
      old: await later(4_000, () => started()),
      beyond: await started({ network: { ...NETWORK, knownUntil: BLOCKS - 5 } }),
      beyondACheckpoint: await started({ network: { ...NETWORK, knownUntil: BLOCKS - 5 }, checkpoint: genesis }),
    };
  });
}
