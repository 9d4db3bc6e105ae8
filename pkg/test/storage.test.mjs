// Stored headers of a site whose storage is full, and of a tab that goes away while it writes; in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serveChain } from './lib/chain-server.mjs';
import { chromiumOnly } from './lib/browser.mjs';
import { openPage } from './lib/in-page.mjs';
import { LIMIT } from './lib/wait.mjs';

const BLOCKS = 2_000;

let served;
let page;

before(async () => {
  served = await serveChain(BLOCKS);
  page = await openPage();
});
after(async () => {
  await page.close();
  await served.close();
});

/** In a page: connects, waits until the headers are stored or the store has failed, and returns the head and the errors of the store. */
const visit = async (given, fails = false) => {
  const { createProvider } = await import('/index.js');
  const { released, storedUpTo } = await import('/test/lib/stored.mjs');
  const { pause, until } = await import('/test/lib/wait.mjs');
  const told = [];
  const provider = await createProvider({ ...given, onStoreError: ({ message }) => told.push(message) });
  const head = Number(await provider.request({ method: 'eth_blockNumber' }));
  if (fails) {
    await until(() => told.length > 0, 'an error of the store');
    // A second one would follow soon.
    await pause(200);
  } else await storedUpTo(head);
  provider.close();
  await released();
  return { head, told };
};

test('a client whose storage is full says so once, and works', { ...LIMIT, ...chromiumOnly }, async () => {
  await page.limitStorage(40_000);
  for (const worker of ['shared', false]) {
    const { head, told } = await page.run(visit, { ...served.options, upstream: `${served.url}/full-${worker}`, worker }, true);
    assert.equal(head, BLOCKS);
    assert.equal(told.length, 1, told.join('; '));
    assert.match(told[0], /^verified headers are not kept: .*quota/i);
  }
});

test('a tab that goes away while it writes leaves pages that the next start uses', LIMIT, async () => {
  await page.limitStorage?.(100_000_000);
  for (const worker of ['shared', false]) {
    const options = { ...served.options, upstream: `${served.url}/torn-${worker}`, worker };
    const tab = await page.tab();
    // Goes away as soon as the first pages are stored.
    const written = await tab(async (given) => {
      const { createProvider } = await import('/index.js');
      const { stored } = await import('/test/lib/stored.mjs');
      void createProvider(given).catch(() => {});
      return stored(1);
    }, options);
    await tab.leave();
    await page.run(async () => (await import('/test/lib/stored.mjs')).released());
    const requests = await served.during(async () => {
      const { head, told } = await page.run(visit, options);
      assert.deepEqual({ head, told }, { head: BLOCKS, told: [] });
    });
    assert.ok(requests < BLOCKS - 64 * written + 60, `${requests} requests after a visit that wrote ${written} pages (${worker})`);
    console.log(`${written} pages of a tab that went away save ${BLOCKS - requests} requests`);
    const last = await served.during(async () => assert.equal((await page.run(visit, options)).head, BLOCKS));
    assert.ok(last < 60, `${last} requests after a whole visit (${worker})`);
    await page.run(async () => {
      const deleted = ({ name }) => new Promise((resolve) => (indexedDB.deleteDatabase(name).onsuccess = resolve));
      await Promise.all((await indexedDB.databases()).map(deleted));
    });
  }
});
