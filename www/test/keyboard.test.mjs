// The page is worked by the keyboard alone.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { find, onPage, withPayment } from './lib/page.mjs';
import { serveFolder } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const isAt = (page, selector) => page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector);

/** Presses Tab until an element has the focus. */
async function tabsTo(page, selector) {
  for (let steps = 0; steps < 60 && !(await isAt(page, selector)); steps += 1) await page.keyboard.press('Tab');
  assert.ok(await isAt(page, selector), `Tab reaches ${selector}`);
}

/** Chooses the practice chain by the keyboard alone. */
async function practiseByKeyboard(page) {
  await page.waitForSelector('#source[data-trouble=absent]', { state: 'attached' });
  await page.keyboard.press('Tab');
  assert.ok(await isAt(page, '.skip'), 'the first Tab stop skips to the content');
  await tabsTo(page, '#source .row .button:last-child');
  await page.keyboard.press('Enter');
}

test('everything is reached and worked by the keyboard', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const at = (selector) => isAt(page, selector);
    const tabTo = (selector) => tabsTo(page, selector);
    await tabTo('.chain .block');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('.drawing')?.textContent.includes('Rootstock header, block 4'));
    await tabTo('.bytes');
    for (let steps = 0; steps < 6 && !(await at('.bytes.key')); steps += 1) await page.keyboard.press('ArrowRight');
    assert.match(await page.textContent('.explain'), /Merkle root/);
    assert.ok((await page.locator('.bytes.lit').count()) >= 2);
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, 'solid', 'focus is visible');
    await tabTo('#explorer .tab');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Space');
    await page.getByLabel('Address of the token').waitFor();
    await tabTo('#lie');
    await page.keyboard.press('Space');
    await page.waitForFunction(() => document.querySelector('#answered')?.textContent.includes('refused'));
    await tabTo('#liar input[type=radio]');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.querySelector('#believed')?.textContent === '1,000,250 DEMO');
    await tabTo('#playground form button');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#playground .log li')?.textContent.includes('paid 1 RBTC'));
  }, { choose: practiseByKeyboard });
});

test('a strip is one Tab stop, and arrow keys move within it', async (t) => {
  const { site, hash } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    for (const strip of ['.chain', '.strip', '#explorer .tabs']) {
      await page.locator(`${strip} button`).first().waitFor();
      assert.equal(await page.locator(`${strip} >> nth=0 >> button:not([tabindex="-1"])`).count(), 1, strip);
    }
    await find(page, hash, 'Transaction');
    await page.locator('.rung').first().focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('.rung').nth(1).getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('End');
    assert.match(await page.evaluate(() => document.activeElement.textContent), /This receipt/);
  });
});

test('a search, a page, its ladder, its links and the way back need no pointer', async (t) => {
  const { site, hash } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    const heading = (text) => page.waitForFunction((wanted) => document.querySelector('#page h1')?.textContent === wanted, text);
    await tabsTo(page, '#search input');
    await page.keyboard.type('1');
    await page.keyboard.press('Enter');
    await heading('Block 1');
    assert.ok(await isAt(page, '#page h1'), 'the heading has the focus, so that screen readers read it');
    await tabsTo(page, '#page .rung');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Space');
    await page.waitForFunction(() => document.querySelector('#page .ladder-panel')?.textContent.startsWith('2. '));
    await page.keyboard.press('Space');
    assert.equal(await page.textContent('#page .ladder-panel'), '', 'the same key closes the step');
    await tabsTo(page, `#page a[href="#/tx/${hash}"]`);
    await page.keyboard.press('Enter');
    await heading('Transaction');
    await page.goBack();
    await heading('Block 1');
    await tabsTo(page, '#page a[href="#top"]');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.documentElement.dataset.view === 'home');
  });
});

test('the lie of the first screen is told and taken back by the keyboard', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await tabsTo(page, '#make-lie');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#demo .side.lie');
    assert.ok(await isAt(page, '#make-lie'), 'the button keeps the focus');
    await tabsTo(page, '#make-lie');
    await page.keyboard.press('Space');
    await page.waitForFunction(() => document.querySelector('#make-lie')?.textContent === 'Make a node lie');
  }, { choose: practiseByKeyboard });
});

test('a contract’s functions, a token’s holder and a query for logs are asked by the keyboard', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const heading = (text) => page.waitForFunction((wanted) => document.querySelector('#page h1')?.textContent === wanted, text);
    await page.locator('#explorer .tab', { hasText: 'Token' }).click();
    const token = await page.getByLabel('Address of the token').inputValue();
    await page.evaluate((to) => { location.hash = to; }, `#/address/${token}`);
    await heading('Contract');
    await tabsTo(page, '#page textarea');
    await page.keyboard.insertText('[{"type":"function","name":"totalSupply","stateMutability":"view","inputs":[]}]');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#page .function');
    await tabsTo(page, '#page .function button');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#page .function .side.good')?.textContent.includes('1,000,000'));
    await page.evaluate((to) => { location.hash = to; }, `#/token/${token}`);
    await heading('Token');
    const before = await page.evaluate(() => location.hash);
    await tabsTo(page, '#page form input');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(token);
    await page.keyboard.press('Enter');
    await page.waitForFunction((old) => location.hash !== old && document.querySelector('#page h1')?.textContent === 'Token', before);
    await page.evaluate(() => { location.hash = '#/logs'; });
    await heading('Logs');
    await tabsTo(page, '#page form input');
    await page.keyboard.insertText(token);
    await page.keyboard.press('Enter');
    await page.waitForFunction((wanted) => location.hash.startsWith(`#/logs/${wanted}`) && document.querySelector('#page h1')?.textContent === 'Logs', token);
    await tabsTo(page, '#page .rung');
  });
});
