// The page stays small.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { practise } from './lib/page.mjs';
import { FOLDER, serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Notes when the first proven answer was shown, in milliseconds since 1970. */
const noteAnswer = () => {
  const watch = new MutationObserver(() => {
    if (!document.querySelector('#level')) return;
    watch.disconnect();
    globalThis.answered = performance.timeOrigin + performance.now();
  });
  watch.observe(document, { childList: true, subtree: true });
};

test('the page stays small: bytes and requests up to the first proven answer', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const own = await serveFolder();
  t.after(own.stop);
  for (const [name, where, most] of [['from a server', site, 520_000], ['in the tab', own, 768_000]]) {
    const { page, requests: all, close } = await openPage(browser, `${where.url}/`, { script: noteAnswer });
    t.after(close);
    if (where.practice) await practise(page);
    await ready(page);
    const [answered, millis] = await page.evaluate(() => [globalThis.answered, globalThis.answered - performance.timeOrigin]);
    for (const part of where.practice ? ['named'] : ['further', 'named']) {
      assert.ok(all.find(({ url }) => url.includes(`/${part}-`)).at >= answered, `${name}: ${part} is loaded after the first proven answer`);
    }
    const requests = all.filter(({ at }) => at < answered);
    const files = [...new Set(requests.filter(({ method }) => method === 'GET').map(({ url }) => new URL(url).pathname))];
    const sizes = await Promise.all(files.map(async (path) => (await stat(`${FOLDER}${path === '/' ? '/index.html' : path}.br`)).size));
    const sum = (chosen) => sizes.filter((_, at) => chosen(files[at])).reduce((whole, size) => whole + size, 0);
    const bytes = sum(() => true);
    const scripts = sum((path) => !path.endsWith('.wasm'));
    t.diagnostic(`${name}: ${bytes} bytes, ${scripts} without the module, in ${files.length} files, ${requests.length} requests; first proven answer after ${Math.round(millis)} ms`);
    assert.ok(scripts < 100_000, `${name}: ${scripts} bytes without the module`);
    assert.ok(bytes < most, `${name}: ${bytes} bytes`);
    const module = requests.findIndex(({ url }) => url.endsWith('.wasm'));
    const asked = requests.slice(0, module).filter(({ method }) => method === 'POST').length;
    assert.ok(asked <= 2, `${name}: ${asked} requests to the server before the module, which takes longest`);
    assert.ok(files.length <= 10 && requests.length <= 80, `${name}: ${files.length} files, ${requests.length} requests`);
  }
});
