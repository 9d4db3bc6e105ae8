// A restart of the browser package in headless Chromium, an hour after a start by window: the time from the start of the page, and from
// `createProvider`, to the first proven balance, and the bytes received until then. The headers have the main network's length; they are from
// a node with Bitcoin's chain, and from one without it.
//
// The module is the one for tests, which accepts a network as an object. The client runs on the page's thread.
//
//   [CHROMIUM=..] [ROUNDS=..] node restart.mjs
import { openPage } from '../../pkg/test/lib/in-page.mjs';
import { DATED_NETWORK, NETWORK, SPACING } from '../../pkg/test/lib/mined-chain.mjs';
import { serveWindow } from '../../pkg/test/lib/window-node.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** Headers of each chain: those of two days, with their ancestors and some more. */
const LENGTH = 6_400;
/** Blocks of an hour. */
const NEW = 120;

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** Runs in the page: a first visit, an hour ago. It ends when all is stored. */
async function before(...given) {
  const { visit } = await import('/test/lib/window-scenario.mjs');
  const { error } = await visit(await import('/test/lib/any-network.mjs'), await import('/store.js'), ...given);
  if (error) throw new Error(error);
}

/** Runs in the page: the milliseconds of a visit from the start of the page, and from `createProvider`. Nothing is left behind. */
async function again(options, account) {
  const { createProvider } = await import('/test/lib/any-network.mjs');
  const began = performance.now();
  const provider = await createProvider(options);
  const { result, start } = await provider.requestWithLevel({ method: 'eth_getBalance', params: [account, 'latest'] });
  const ended = performance.now();
  provider.close();
  for (const { name } of await indexedDB.databases()) {
    await new Promise((resolve) => Object.assign(indexedDB.deleteDatabase(name), { onsuccess: resolve, onblocked: resolve, onerror: resolve }));
  }
  return { page: ended, client: ended - began, result, start };
}

const page = await openPage();
try {
  for (const [name, network, isDated] of [["a node with Bitcoin's chain", DATED_NETWORK, true], ['a node without it', NETWORK, false]]) {
    const node = await serveWindow(LENGTH, isDated);
    const options = { network, upstreams: node.url };
    const seen = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      node.show(NEW);
      await page.run(before, options, node.account, NEW * SPACING);
      await page.reload();
      node.show(0);
      node.take();
      const one = await page.run(again, options, node.account);
      const { proven } = node.take();
      if (one.result !== node.balance || one.start !== 'window') throw new Error(`the answer is ${JSON.stringify(one)}`);
      seen.push({ ...one, proven });
      await page.reload();
    }
    const [whole, client, bytes] = ['page', 'client', 'proven'].map((what) => median(seen.map((each) => each[what])));
    console.log(`${name}: ${whole.toFixed(0)} ms from the start of the page, ${client.toFixed(0)} ms from createProvider, ${bytes} bytes`);
    await node.close();
  }
} finally {
  await page.close();
}
