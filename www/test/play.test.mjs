// The development chain to play with.
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

const button = (page, name) => page.locator('#playground').getByRole('button', { name, exact: true });
const line = (page, text) => page.waitForFunction((part) => document.querySelector('#playground .log li')?.textContent.includes(part), text);
const head = (page, number) => page.waitForFunction((text) => document.querySelector('#head')?.textContent === text, `#${number}`);

test('payments, contracts, calls, traces and snapshots work, and the blocks above follow', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground tbody tr');
    await button(page, 'Send').click();
    await line(page, 'Account 1 paid 1 RBTC to Account 2, in block 6');
    await head(page, 6);
    await button(page, 'Deploy').click();
    await line(page, 'A counter is at 0x');
    await button(page, 'Take a snapshot').click();
    await line(page, 'A snapshot of everything at block 7');
    await button(page, 'Send as a transaction').click();
    await line(page, 'increment() in block 8');
    // The chain goes back only after the light client has seen block 8.
    await head(page, 8);
    await page.locator('#playground').getByLabel('Function').fill('number()');
    await button(page, 'Ask').click();
    await line(page, 'number() answers 1');
    await page.locator('#playground .log').getByRole('button', { name: 'Trace' }).first().click();
    await page.waitForSelector('#trace tbody tr');
    const instructions = await page.locator('#trace tbody th').allTextContents();
    assert.ok(instructions.includes('SSTORE') && instructions.at(-1) === 'STOP', instructions.join(' '));
    await button(page, 'Back to block 7').click();
    await page.waitForFunction(() => document.querySelector('#height')?.textContent === '7');
    await page.locator('#playground .log').locator('li', { hasText: 'increment() in block 8' }).getByRole('button', { name: 'Trace' }).click();
    await line(page, 'the chain no longer has this transaction');
    await page.waitForFunction(() => document.querySelector('#height')?.textContent === '7');
    await button(page, 'Ask').click();
    await line(page, 'number() answers 0');
    // The light client keeps the branch with more work, and follows the new one when it has more.
    assert.equal(await page.textContent('#head'), '#8');
    await button(page, 'Mine 10').click();
    await head(page, 17);
  });
});

test('code with a mistake is refused with its line, and bytes of a compiler are deployed as they are', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground textarea');
    for (const empty of ['', ' ; nothing', '0x']) {
      await page.locator('#playground textarea').fill(empty);
      await button(page, 'Deploy').click();
      await line(page, 'there is no code');
      await page.locator('#playground .log li').first().evaluate((each) => each.remove());
    }
    await page.locator('#playground textarea').fill('PUSH 1\nJUMPP');
    await button(page, 'Deploy').click();
    await line(page, 'line 2: JUMPP is no instruction');
    await page.locator('#playground textarea').fill('0x600a600c600039600a6000f3602a60005260206000f3');
    await button(page, 'Deploy').click();
    await line(page, 'is at 0x');
    await page.locator('#playground').getByLabel('Function').fill('0x');
    await button(page, 'Ask').click();
    await line(page, '0x answers 42');
  });
});

test('on a server’s page the chain in the tab starts on request and leaves the server’s chain alone', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.getByRole('button', { name: 'Start a chain in this tab' }).click();
    await page.waitForSelector('#playground tbody tr');
    await button(page, 'Send').click();
    await line(page, 'Account 1 paid 1 RBTC to Account 2');
    assert.equal(await page.textContent('#head'), '#0', 'the server’s chain');
  });
});
