// Everybody can see the page: large letters, small screens, and both sets of colours.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ready, startBrowser } from './lib/browser.mjs';
import { has, onPage, practise, SIZES } from './lib/page.mjs';
import { call, serveFolder, startSite } from './lib/site.mjs';

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** The contrast of two colours that the browser writes as `rgb(...)`, as WCAG defines it. */
function contrast(...colours) {
  const light = colours.map((colour) => {
    const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  });
  return Math.max(...light) / Math.min(...light);
}

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

/** Runs axe-core in a page, and names what it finds. */
async function complaintsOf(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map(({ target }) => target).join('; ')}`);
}

/** Runs work with the page in each size and with each set of colours. */
async function everywhere(site, work) {
  for (const [name, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      await onPage(browser, site, (page) => work(page, `${name}-${colorScheme}`), { viewport, colorScheme });
    }
  }
}

/** Checks what is shown: nothing for axe-core to find, and nothing wider than the screen. */
async function check(page, name) {
  if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
  assert.deepEqual(await complaintsOf(page), [], name);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${name}: nothing is wider than the screen`);
}

test('axe-core finds nothing on the first page, on desktop and phone, dark and light', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await everywhere(site, async (page, name) => {
    await unfold(page);
    await check(page, `${name}-first`);
  });
});

/** Opens each page that has an address of its own, with all that it can unfold. */
async function eachPage(page, work) {
  const { token, account } = await page.evaluate(() => {
    document.querySelectorAll('#explorer .tab')[1].click();
    const [token, account] = [...document.querySelectorAll('#explorer input')].map(({ value }) => value);
    return { token, account };
  });
  const pages = [['block/3', 'Block 3'], ['tx', 'Transaction'], [`address/${account}`, 'Account'], [`address/${token}`, 'Contract'], [`token/${token}`, 'Token'], [`logs/${token}`, 'Logs']];
  for (const [where, heading] of pages) {
    const hash = where === 'tx' ? await page.getAttribute('#page a[href^="#/tx/"]', 'href') : `#/${where}`;
    await page.evaluate((to) => { location.hash = to; }, hash);
    await page.waitForFunction((wanted) => document.querySelector('#page h1')?.textContent === wanted, heading);
    await page.locator('#page .rung').nth(3).click();
    await page.evaluate(() => document.querySelectorAll('#page details').forEach((each) => { each.open = true; }));
    if (heading === 'Contract') {
      await page.getByLabel('ABI', { exact: true }).fill('[{"type":"function","name":"balanceOf","stateMutability":"view","inputs":[{"name":"who","type":"address"}]},{"type":"function","name":"totalSupply","stateMutability":"view","inputs":[]}]');
      await page.getByRole('button', { name: 'Show the functions' }).click();
      await page.locator('#page .function').nth(1).getByRole('button').first().click();
      await page.waitForSelector('#page .function .answer');
    }
    await work(heading.toLowerCase().replace(' ', '-'));
  }
}

test('axe-core finds nothing on the pages of blocks, transactions, accounts, contracts, tokens and logs', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await everywhere(site, (page, name) => eachPage(page, (kind) => check(page, `${name}-${kind}`)));
});

/** Goes on from the network in the playground, and calls `work` at each of its states. */
async function eachState(page, work) {
  const playground = page.locator('#playground');
  await playground.getByRole('button', { name: 'Go on from the network' }).click();
  await work('offer');
  await page.getByLabel('Node', { exact: true }).fill('https://node.example/');
  await playground.getByRole('button', { name: 'Begin', exact: true }).click();
  await playground.locator('[role=status] .badge.bad').waitFor();
  await work('refused');
  await page.getByLabel('Node', { exact: true }).fill('');
  await playground.getByRole('button', { name: 'Begin', exact: true }).click();
  await playground.locator('#fork .badge').waitFor();
  await playground.getByRole('button', { name: 'Send', exact: true }).click();
  await page.waitForFunction(() => document.querySelector('#playground .log')?.textContent.includes('paid 1 RBTC'));
  await work('fork');
}

test('axe-core finds nothing on a playground that goes on from the network', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await everywhere(site, (page, name) => eachState(page, (state) => check(page, `${name}-${state}`)));
});

test('at 200 % and 400 % nothing needs a horizontal scroll, whether the page or only its letters are larger', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  // A window of 1,280 pixels at 200 % has 640 pixels of CSS, two of the screen each.
  const zoomed = { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 };
  const narrow = { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 };
  const letters = { viewport: SIZES.desktop, script: () => addEventListener('DOMContentLoaded', () => { document.documentElement.style.fontSize = '200%'; }) };
  for (const [name, options] of Object.entries({ zoomed, narrow, letters })) {
    await onPage(browser, site, async (page) => {
      const over = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      await unfold(page);
      assert.equal(await over(), 0, `${name}: first page`);
      await eachPage(page, async (kind) => assert.equal(await over(), 0, `${name}: ${kind}`));
    }, options);
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

/** The short words in the first cells of tables that stand in two lines. */
const brokenWords = (page) => page.evaluate(() => [...document.querySelectorAll('tbody th')].flatMap(({ childNodes }) => [...childNodes].filter(({ data }) => data)).flatMap((text) => {
  const range = document.createRange();
  return [...text.data.matchAll(/[^\s:]{1,10}/g)].filter(({ 0: word, index }) => {
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1;
  }).map(([word]) => word);
}));

test('on a phone the tables of nodes and of accounts break no short word', async (t) => {
  const [site, own] = [await startSite('dev'), await serveFolder()];
  t.after(site.stop);
  t.after(own.stop);
  for (const viewport of [SIZES.phone, { width: 320, height: 740 }]) {
    await onPage(browser, site, async (page) => {
      await page.locator('#status summary').first().click();
      assert.equal(await page.locator('#status tbody th').count(), 1);
      assert.deepEqual(await brokenWords(page), [], `${viewport.width} pixels`);
    }, { viewport });
    await onPage(browser, own, async (page) => {
      await page.waitForSelector('#playground tbody th');
      assert.deepEqual(await brokenWords(page), [], `${viewport.width} pixels`);
    }, { viewport });
  }
});

test('on a phone the first screen has the name of the page, both of its buttons, and texts that can be read', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  for (const viewport of [SIZES.phone, { width: 390, height: 740 }, { width: 320, height: 880 }]) {
    await onPage(browser, site, async (page) => {
      const [room, example] = await page.evaluate(() => {
        const input = document.querySelector('#search input');
        const measure = document.createElement('canvas').getContext('2d');
        const { fontSize, fontFamily, paddingLeft } = getComputedStyle(input);
        measure.font = `${fontSize} ${fontFamily}`;
        return [input.clientWidth - 2 * Number.parseFloat(paddingLeft), measure.measureText(input.placeholder).width];
      });
      assert.ok(example <= room, `the example in the field is whole at ${viewport.width} pixels`);
      const [input, button] = await Promise.all(['#search input', '#search .button'].map((part) => page.locator(part).boundingBox()));
      assert.ok(input.x + input.width < button.x || input.y + input.height < button.y, `the field is not below its button at ${viewport.width} pixels`);
      await page.locator('#status summary').first().click();
      const [table, shown] = await page.locator('#status .scroll').evaluate((each) => [each.scrollWidth, each.clientWidth]);
      assert.ok(table <= shown, `all columns of the table are seen at ${viewport.width} pixels`);
      await page.locator('#status summary').first().click();
      for (const part of ['.brand span', '.top nav', '#theme', '#make-lie', '#search .button']) {
        const { x, y, width, height } = await page.locator(part).boundingBox();
        assert.ok(width > 20 && x >= 0 && x + width <= viewport.width, `${part} is seen at ${viewport.width} pixels`);
        assert.ok(y + height <= viewport.height, `${part} ends at ${y + height} of ${viewport.height} pixels`);
      }
    }, { viewport });
  }
  for (const colorScheme of ['light', 'dark']) {
    await onPage(browser, site, async (page) => {
      const [placeholder, ground, title, text, gap] = await page.evaluate(() => {
        const [input, heading] = ['#search input', '#demo h2'].map((name) => document.querySelector(name));
        const below = heading.nextElementSibling.getBoundingClientRect().top - heading.getBoundingClientRect().bottom;
        return [getComputedStyle(input, '::placeholder').color, getComputedStyle(input).backgroundColor, getComputedStyle(heading).color, getComputedStyle(document.body).color, below];
      });
      assert.ok(contrast(placeholder, ground) >= 4.5, `the example in the field has a contrast of ${contrast(placeholder, ground)}`);
      assert.equal(title, text, 'titles are as dark as texts');
      assert.ok(gap >= 6, `${gap} pixels between a title and its text`);
    }, { colorScheme });
  }
});

test('no hint covers the bytes of a proof, and no byte stands alone in a line', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await call(site.node, 'evm_mine');
  for (const viewport of Object.values(SIZES)) {
    await onPage(browser, site, async (page) => {
      await has(page, '#proof .stage', 4);
      assert.equal(await page.locator('#proof .explain').isVisible(), false, 'nothing is explained yet');
      const alone = await page.evaluate(() => [...document.querySelectorAll('#proof .bytes')].filter((field) => {
        const range = document.createRange();
        range.selectNodeContents(field.querySelector('.mono'));
        const lines = [...range.getClientRects()];
        return lines.length > 1 && lines.at(-1).width < 30;
      }).map((field) => field.querySelector('.name').textContent));
      assert.deepEqual(alone, []);
      await page.locator('#proof .bytes').first().focus();
      assert.match(await page.textContent('#proof .explain'), /^version/);
      assert.equal(await page.locator('#proof .explain').isVisible(), true);
      // A field at the lower edge of the screen.
      await page.evaluate(() => scrollBy(0, document.querySelectorAll('#proof .bytes')[2].getBoundingClientRect().bottom + 10 - innerHeight));
      await page.locator('#proof .bytes').nth(2).focus();
      const [field, text] = await Promise.all(['.bytes.lit', '.explain'].map((part) => page.locator(`#proof ${part}`).first().boundingBox()));
      assert.ok(field.y + field.height <= text.y, `the explanation covers its field on ${viewport.width} pixels`);
    }, { viewport });
  }
});
