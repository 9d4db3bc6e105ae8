// Everybody can use the page: keyboard, colours, small screens; and it stays small.
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { onPage, practise } from './lib/page.mjs';
import { FOLDER, serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } };

/** Folder for pictures of the page, to be looked at by people. */
const SCREENSHOTS = process.env.PAGE_SCREENSHOTS;

/** Shows everything that can be shown. */
async function unfold(page) {
  await page.locator('#lie').check();
  await page.waitForFunction(() => document.querySelector('#answered')?.textContent.includes('refused'));
  await page.locator('#playground').getByRole('button', { name: 'Send', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('#playground .log li').length > 1);
  await page.locator('#explorer .tab', { hasText: 'Token' }).click();
  await page.waitForSelector('#explorer .path');
  await page.evaluate(() => document.querySelectorAll('details').forEach((each) => { each.open = true; }));
}

test('axe-core finds nothing, on desktop and phone, dark and light', async (t) => {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const site = await serveFolder();
  t.after(site.stop);
  for (const [name, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      await onPage(browser, site, async (page) => {
        await unfold(page);
        if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}-${colorScheme}.png`), fullPage: true });
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
        const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map(({ target }) => target).join('; ')}`);
        assert.deepEqual(found, [], `${name}, ${colorScheme}`);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width, `${name}: nothing is wider than the screen`);
      }, { viewport, colorScheme });
    }
  }
});

test('the colours follow the system until the visitor chooses, and the choice is kept', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await paper();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, dark);
    await page.getByRole('button', { name: 'Dark colours' }).click();
    assert.equal(await paper(), dark);
    // The choice is written and read beside everything else: it is awaited on both sides of the reload.
    await page.waitForFunction(async () => {
      const choices = await new Promise((done) => {
        indexedDB.open('rootlight-page').onsuccess = ({ target }) => done(target.result);
      });
      const chosen = await new Promise((done) => {
        choices.transaction('choices').objectStore('choices').get('theme').onsuccess = ({ target }) => done(target.result);
      });
      choices.close();
      return chosen === 'dark';
    });
    await page.reload();
    await practise(page);
    await ready(page);
    await page.waitForFunction((wanted) => getComputedStyle(document.body).backgroundColor === wanted, dark);
  }, { colorScheme: 'dark' });
});

test('where storage is denied the page works, and the colours last until it is left', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  const script = () => {
    indexedDB.open = () => {
      throw new DOMException('denied', 'SecurityError');
    };
  };
  await onPage(browser, site, async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await paper();
    await page.getByRole('button', { name: 'Dark colours' }).click();
    assert.notEqual(await paper(), dark);
  }, { colorScheme: 'dark', script });
});

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
    await page.waitForFunction(() => document.querySelector('#proof .tab')?.textContent.endsWith('block 4'));
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

/** Waits until a section is where a link to it ends: 80 pixels below the top (`scroll-padding-top`), below the bar. */
const arrives = (page, id) =>
  page.waitForFunction((id) => Math.abs(document.getElementById(id).getBoundingClientRect().top - 80) < 2, id);

/** Opens the page on a phone's screen. */
const onPhone = async (t, work, options = {}) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, work, { viewport: SIZES.phone, ...options });
};

/** Makes elements of the page higher, one after the other, with a frame between. */
const grow = (page, selectors) =>
  page.evaluate(async (selectors) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    for (const selector of selectors) {
      document.querySelector(selector).style.paddingBottom = '400px';
      await frame();
    }
  }, selectors);

test('links to sections end at their headings', async (t) => {
  await onPhone(t, async (page) => {
    for (const name of ['Play', 'Blocks', 'Tamper']) {
      await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name }).click();
      await arrives(page, name.toLowerCase());
    }
  });
});

test('an address that names a section opens the page there', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, (page) => arrives(page, 'explore'), { viewport: SIZES.phone, hash: '#explore' });
});

test('a link to a section holds while what is above it grows', async (t) => {
  await onPhone(t, async (page) => {
    await page.evaluate(() => document.querySelector('nav a[href="#play"]').click());
    await grow(page, ['#status', '#chain', '#explorer']);
    await arrives(page, 'play');
    // Without the browser's own anchoring, as in Safari.
    await page.evaluate(() => document.documentElement.style.setProperty('overflow-anchor', 'none'));
    await grow(page, ['#top', '#blocks', '#liar']);
    await arrives(page, 'play');
  });
});

test('a visitor who scrolls away from a linked section is left alone', async (t) => {
  await onPhone(t, async (page) => {
    await page.evaluate(() => document.querySelector('nav a[href="#tamper"]').click());
    await arrives(page, 'tamper');
    await page.mouse.move(200, 400);
    await page.mouse.wheel(0, -300);
    await page.waitForFunction(() => document.getElementById('tamper').getBoundingClientRect().top > 200);
    await page.evaluate(() => document.documentElement.style.setProperty('overflow-anchor', 'none'));
    const before = await page.evaluate(() => scrollY);
    await grow(page, ['#status', '#playground']);
    assert.equal(await page.evaluate(() => scrollY), before);
  });
});

test('the page stays small: bytes and requests up to the first proven answer', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const own = await serveFolder();
  t.after(own.stop);
  for (const [name, where, most] of [['from a server', site, 505_000], ['in the tab', own, 655_000]]) {
    const { page, requests, close } = await openPage(browser, `${where.url}/`);
    t.after(close);
    if (where.practice) await practise(page);
    await page.waitForSelector('#level');
    const millis = await page.evaluate(() => performance.now());
    const files = [...new Set(requests.filter(({ method }) => method === 'GET').map(({ url }) => new URL(url).pathname))];
    const sizes = await Promise.all(files.map(async (path) => (await stat(`${FOLDER}${path === '/' ? '/index.html' : path}.br`)).size));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    t.diagnostic(`${name}: ${bytes} bytes in ${files.length} files, ${requests.length} requests; first proven answer after ${Math.round(millis)} ms`);
    assert.ok(bytes < most, `${name}: ${bytes} bytes`);
    assert.ok(files.length <= 10 && requests.length <= 80, `${name}: ${files.length} files, ${requests.length} requests`);
  }
});
