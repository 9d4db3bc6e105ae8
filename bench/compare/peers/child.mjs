// A client in its own process, which carries out its parent's orders one after another.
import { performance } from 'node:perf_hooks';

const [kind] = process.argv.slice(2);
let client;

/** Makes calls one after another; returns the result and the milliseconds of each. */
async function calls(list) {
  const done = [];
  for (const transaction of list) {
    const began = performance.now();
    const result = await client.call(transaction);
    done.push({ result, milliseconds: performance.now() - began });
  }
  return done;
}

const orders = {
  open: async (options) => {
    client = await (await import(`./${kind}.mjs`)).open(options);
  },
  follow: (block) => client.follow(block),
  calls,
  close: async () => {
    await client.close();
    process.exit();
  },
};

process.on('message', async ({ order, what }) => {
  try {
    const value = await orders[order](what);
    process.send({ value });
  } catch (error) {
    process.send({ error: String(error?.message ?? error) });
  }
});
