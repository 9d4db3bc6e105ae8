// Links and addresses end where they lead, also while the page grows.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { startBrowser } from './lib/browser.mjs';
import { onPage, SIZES } from './lib/page.mjs';
import { serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

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
