// The built page in Chromium, under the policy of the program.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Runs work with the page of a site, then checks that it broke no rule. */
async function onPage(site, work, options) {
  const tab = await openPage(browser, `${site.url}/${options?.path ?? ''}`, options);
  try {
    await ready(tab.page);
    await work(tab.page, tab);
    assert.deepEqual(tab.complaints, [], 'errors and foreign requests');
    assert.deepEqual(await tab.page.evaluate(() => globalThis.violations), [], 'violations of the policy');
  } finally {
    await tab.close();
  }
}

test('a page without a server proves blocks of a chain in its own tab', async () => {
  const site = await serveFolder();
  await onPage(site, async (page) => {
    assert.equal(await page.textContent('#level'), 'verified');
    await page.waitForSelector('.drawing .verdict');
    assert.equal(await page.locator('.drawing .verdict.good').count(), 4, 'every step holds');
    assert.equal(await page.locator('.drawing .verdict.bad').count(), 0);
  });
  await site.stop();
});

test('a page from the program proves that program’s blocks', async () => {
  const site = await startSite('dev');
  await onPage(site, async (page, { requests }) => {
    assert.ok(requests.some(({ method }) => method === 'POST'), 'it asks its own server');
    await page.getByRole('button', { name: 'Mine a block' }).click();
    await page.waitForFunction(() => document.querySelector('#head')?.textContent === '#1');
    await page.getByRole('button', { name: 'Show the newest block' }).click();
    await page.waitForSelector('.drawing .verdict');
    assert.equal(await page.locator('.drawing .verdict.good').count(), 4);
  });
  await site.stop();
});
