// The section that makes a node lie: an ordinary wallet shows the lie, the light client names the node.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { onPage } from './lib/page.mjs';
import { serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Each lie: what a wallet believes, what is true, and the reason in words. */
const LIES = [
  ['balance', '1,010,001.6 RBTC', '10,001.6 RBTC', /another hash/],
  ['token', '1,000,250 DEMO', '250 DEMO', /another hash/],
  ['log', 'a payment of 42,000 DEMO', 'a payment of 42 DEMO', /receipts do not belong to the block/],
  ['block', undefined, undefined, /No proof of work names this block/],
];

/** The outcome of the last choice is shown. */
const settled = (page) => page.locator('#outcome:not([aria-busy]) #answered').waitFor();

test('every lie is believed by a wallet, and caught by name by the light client', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    assert.match(await page.textContent('#liar .switches'), /honest Node B, too.*example at the top of the page has one/);
    const believed = () => page.textContent('#believed');
    const answered = () => page.textContent('#answered');
    for (const [name, lie, truth, reason] of LIES) {
      await page.locator(`#liar input[value=${name}]`).check();
      await settled(page);
      const honest = await answered();
      if (truth) assert.equal(honest, `${truth} proven`, name);
      await page.locator('#lie').check();
      await settled(page);
      // The block of a log is executed again on state that Node A proves.
      assert.equal(await answered(), name === 'log' ? `${truth} proven` : 'lie refused No answer', name);
      if (lie) assert.equal(await believed(), lie, name);
      // The lie that is believed is alarming, and not the client that refuses it.
      if (lie) assert.equal(await page.locator('#liar .side.lie #believed').count(), 1, name);
      assert.equal(await page.locator('#liar .side.good #answered').count(), 1, name);
      assert.match(await page.textContent('#liar .note.caught'), /^Node A was caught\./, name);
      assert.match(await page.textContent('#liar .note.caught'), reason, name);
      await page.locator('#help').check();
      await settled(page);
      assert.equal(await answered(), honest, `${name}, beside an honest node`);
      if (lie) assert.equal(await believed(), lie, name);
      assert.match(await page.textContent('#liar .note.caught'), /^Node A was caught\./, `${name}, beside an honest node`);
      assert.match(await page.textContent('#liar'), /Node B brought the proof/);
      await page.locator('#help').uncheck();
      await page.locator('#lie').uncheck();
      await settled(page);
      assert.equal(await answered(), honest, `${name}, honest again`);
    }
  });
});

test('on a server’s page the lies are told by a chain in the tab, and the server is left alone', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page, { requests }) => {
    await page.locator('#tamper').scrollIntoViewIfNeeded();
    await settled(page);
    const before = requests.filter(({ method }) => method === 'POST').length;
    await page.locator('#lie').check();
    await page.waitForFunction(() => document.querySelector('#answered')?.textContent.includes('refused'));
    assert.equal(await page.textContent('#believed'), '1,010,001.6 RBTC');
    const asked = requests.filter(({ method }) => method === 'POST').length - before;
    assert.ok(asked <= 10, `${asked} requests to the server, which are those of the client that follows it`);
  });
});
