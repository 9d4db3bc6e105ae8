// Browsers that forbid what the page uses: storage, workers, scripts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { climb, find, onPage } from './lib/page.mjs';
import { serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Each way in which a browser denies storage, as a script that runs before the page's own. */
const DENIED = {
  'IndexedDB that does not open': () => {
    indexedDB.open = () => {
      throw new DOMException('denied', 'SecurityError');
    };
  },
  'all storage, at the first look': () => {
    for (const name of ['indexedDB', 'localStorage', 'sessionStorage', 'caches']) {
      Object.defineProperty(globalThis, name, { get() { throw new DOMException('denied', 'SecurityError'); } });
    }
    Object.defineProperty(navigator, 'storage', { get() { throw new DOMException('denied', 'SecurityError'); } });
  },
};

for (const [name, script] of Object.entries(DENIED)) {
  test(`where storage is denied (${name}) the page works, and the colours last until it is left`, async (t) => {
    const site = await startSite('dev');
    t.after(site.stop);
    await onPage(browser, site, async (page) => {
      const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const dark = await paper();
      await page.getByRole('button', { name: 'Dark colours' }).click();
      assert.notEqual(await paper(), dark);
      await page.waitForSelector('#explorer .side.good');
    }, { colorScheme: 'dark', script });
  });
}

test('where workers are forbidden the light client and the practice chain run on the page’s own thread', async (t) => {
  const script = () => {
    for (const name of ['Worker', 'SharedWorker']) {
      globalThis[name] = class {
        constructor() {
          throw new DOMException('denied', 'SecurityError');
        }
      };
    }
  };
  for (const site of [await startSite('dev'), await serveFolder()]) {
    t.after(site.stop);
    await onPage(browser, site, async (page) => {
      assert.equal(page.workers().length, 0);
      await page.waitForSelector('#explorer .side.good');
      await find(page, site.practice ? '5' : '0', site.practice ? 'Block 5' : 'Block 0');
      if (site.practice) await climb(page);
    }, { script });
  }
});

test('without JavaScript the page says that it needs it, and that nothing starts', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  const { page, close } = await openPage(browser, `${site.url}/`, { javaScriptEnabled: false });
  t.after(close);
  assert.ok(await page.locator('noscript .note').isVisible());
  const waiting = await page.locator('.loading').all();
  assert.ok(waiting.length > 0);
  for (const each of waiting) assert.equal(await each.isVisible(), false, await each.textContent());
});
