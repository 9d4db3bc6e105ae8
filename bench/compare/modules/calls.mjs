// The npm package in a folder, as a light client of the chain that the parent serves: calls on this thread and in a worker thread.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder] = process.argv.slice(2);
/** No block is mined meanwhile. */
const POLL = 3_600;

/** Requests that wait for answers at the same time. */
const PIPELINED = 64;

const { createProvider } = await import(pathToFileURL(join(folder, 'index.js')));
const providers = {};

async function one(provider, call, result) {
  const got = await provider.request({ method: 'eth_call', params: [call, 'latest'] });
  if (got !== result) throw new Error(`${got} instead of ${result}`);
}

async function inTurn(provider, calls, count) {
  for (let at = 0; at < count; at += 1) {
    const { call, result } = calls[at % calls.length];
    await one(provider, call, result);
  }
}

async function pipelined(provider, calls, count) {
  let at = 0;
  const lane = async () => {
    while (at < count) {
      const { call, result } = calls[at % calls.length];
      at += 1;
      await one(provider, call, result);
    }
  };
  await Promise.all(Array.from({ length: PIPELINED }, lane));
}

const ways = {
  'this thread, one after another': () => [providers.thread, inTurn],
  'this thread, 64 at once': () => [providers.thread, pipelined],
  'a worker, one after another': () => [providers.worker, inTurn],
  'a worker, 64 at once': () => [providers.worker, pipelined],
};

const orders = {
  async open({ options, calls }) {
    providers.thread = await createProvider({ ...options, pollSeconds: POLL, storage: null });
    providers.worker = await createProvider({ ...options, pollSeconds: POLL, storage: null, worker: 'dedicated' });
    // Every call is proven once; after that nothing is fetched.
    for (const provider of Object.values(providers)) await inTurn(provider, calls, calls.length);
    return Object.keys(ways);
  },
  async time({ way, calls, count }) {
    const [provider, work] = ways[way]();
    const began = performance.now();
    await work(provider, calls, count);
    return performance.now() - began;
  },
  close() {
    Object.values(providers).forEach((provider) => provider.close());
    process.exit();
  },
};

process.on('message', async ({ order, what }) => {
  try {
    process.send({ value: await orders[order](what) });
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) });
  }
});
