// The built page in Chromium, under the policy of the program: blocks and explorer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { has, onPage as on, openForm, practise } from './lib/page.mjs';
import { call, serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());
const onPage = (...args) => on(browser, ...args);

/** The workers that a page runs, by the names of their files before the hash. */
const workersOf = (page) => page.workers().map((worker) => /([\w-]+)-[\w-]{8}\.js$/.exec(worker.url())?.[1]);

test('a page names no script but its workers', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  const { page, close } = await openPage(browser, `${site.url}/`);
  try {
    await practise(page);
    await ready(page);
    const [own] = page.workers().map((worker) => worker.url());
    const refused = await page.evaluate((own) => {
      const other = own.replace(/worker-[^/]*$/, 'index-01234567.js');
      const attempt = (url) => {
        try {
          new Worker(url, { type: 'module' }).terminate();
          return 'started';
        } catch (error) {
          return error.name;
        }
      };
      const text = (write) => {
        try {
          write(document.createElement('div'));
          return 'written';
        } catch (error) {
          return error.name;
        }
      };
      const html = text((element) => (element.innerHTML = '<b>text</b>'));
      return { own: attempt(own), other: attempt(other), data: attempt('data:text/javascript,0'), relative: attempt('/worker-01234567.js'), html };
    }, own);
    assert.deepEqual(refused, { own: 'started', other: 'TypeError', data: 'TypeError', relative: 'TypeError', html: 'TypeError' });
  } finally {
    await close();
  }
});

test('a page without a server proves blocks of a chain in its own tab', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(site, async (page) => {
    assert.equal(await page.textContent('#level'), 'proven');
    // The chain, the light client, and the one of the lie that is shown first.
    const workers = workersOf(page);
    assert.ok(workers.length >= 2 && workers.every((name) => name === 'dev-worker'), workers.join());
    await page.getByText('What do the labels mean?').click();
    await has(page, '.chain .block', 6);
    await has(page, '.drawing .verdict.good', 4);
    assert.equal(await page.locator('.drawing .verdict.bad').count(), 0);
    for (const id of ['chain', 'proof', 'explorer', 'liar', 'playground']) assert.ok((await page.textContent(`#${id}`)).length > 100, id);
    await page.getByRole('button', { name: 'Mine a block' }).first().click();
    await page.waitForFunction(() => document.querySelector('#head')?.textContent === '#6');
    assert.equal(await page.locator('#status details[open]').count(), 1, 'what a visitor opened stays open as blocks arrive');
  });
});

test('a real block of the main network is drawn, and equal bytes light up together', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(site, async (page) => {
    await page.getByRole('button', { name: 'Main network, block 9,000,000' }).click();
    await has(page, '.fold', 13);
    assert.equal(await page.locator('.drawing .verdict.good').count(), 4);
    const tops = await page.locator('.drawing .strip').first().evaluate(({ children }) => [...children].slice(0, 3).map((field) => field.getBoundingClientRect().top));
    assert.deepEqual(tops, tops.map(() => tops[0]), 'fields of a row begin at one height');
    await page.locator('.bytes', { hasText: 'hash for merged mining' }).hover();
    const lit = await page.locator('.bytes.lit .name').allTextContents();
    assert.deepEqual(lit, ['hash of the Rootstock header', 'hash for merged mining']);
    assert.match(await page.textContent('.explain'), /Keccak-256 of the header/);
  });
});

test('a block of the main network that is chosen early stays chosen when the chain appears', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  const script = () => {
    const observer = new MutationObserver(() => {
      const [, real] = document.querySelectorAll('#proof .tab');
      if (!real) return;
      observer.disconnect();
      real.click();
    });
    observer.observe(document, { childList: true, subtree: true });
  };
  await onPage(site, async (page) => {
    await has(page, '.chain .block', 6);
    await page.getByRole('button', { name: 'This chain, block 5' }).waitFor();
    await page.waitForTimeout(500);
    assert.equal(await page.locator('.fold').count(), 13);
    assert.equal(await page.getAttribute('#proof .tab:last-child', 'aria-pressed'), 'true');
    await page.locator('.chain .block').nth(1).click();
    await page.getByRole('button', { name: 'This chain, block 4', pressed: true }).waitFor();
  }, { script });
});

test('a page from the program proves that program’s blocks as they are mined', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(site, async (page, { requests }) => {
    assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
    assert.ok(requests.some(({ method }) => method === 'POST'), 'it asks its own server');
    assert.deepEqual(workersOf(page), ['worker']);
    // The chain has no mined block yet, so a block of the main network is drawn.
    await has(page, '.fold', 13);
    await page.getByRole('button', { name: 'Mine a block' }).first().click();
    await page.waitForFunction(() => document.querySelector('#head')?.textContent === '#1');
    await call(site.node, 'evm_mine');
    await page.waitForFunction(() => document.querySelector('#head')?.textContent === '#2');
    await page.getByRole('button', { name: 'Show the newest block' }).click();
    await has(page, '.drawing .verdict.good', 4);
  });
});

test('a page from a light client of a recording shows its chain', async (t) => {
  const recording = new URL('../../native/recordings/regtest.jsonl.gz', import.meta.url).pathname;
  const site = await startSite('light', '--network', 'regtest', '--upstream', `replay:${recording}`, '--checkpoint', 'none', '--max-age', '0');
  t.after(site.stop);
  await onPage(site, async (page) => {
    assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
    assert.equal(await page.textContent('#head'), '#75');
    await has(page, '.drawing .verdict.good', 4);
    // What is asked first is answered by now.
    await page.waitForSelector('#explorer .answer, #explorer .note, #explorer .log');
    assert.equal(await page.locator('#chain').getByRole('button', { name: 'Mine a block' }).count(), 0, 'a light client mines nothing');
  });
});

test('the explorer proves an account, a token, a call and logs, with every step of their paths', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(site, async (page) => {
    const values = (side) => page.locator(`#explorer .side${side} .value`).allTextContents();
    const fits = async (count) => {
      await has(page, '#explorer .path .badge.good', count);
      assert.equal(await page.locator('#explorer .path .badge.bad').count(), 0);
    };
    await fits(1);
    assert.deepEqual(await values('.good'), ['10,001.6 RBTC', '1', 'an ordinary account']);
    assert.deepEqual(await page.locator('#explorer .evidence li').allTextContents(), [
      'Everything since the first block was checked here; that block is trusted as the node shows it, because each chain of this kind has its own.',
    ]);
    await openForm(page, 'Token');
    await fits(2);
    assert.deepEqual(await values('.good'), ['250', 'Rootlight Demo', 'DEMO']);
    await openForm(page, 'Contract');
    await fits(1);
    assert.match((await values('.good'))[0], /^1,000,000,000,000,000,000,000,000, as an amount 1,000,000/);
    await openForm(page, 'Logs');
    await page.waitForSelector('#explorer .log li');
    const logs = await page.locator('#explorer .log strong').allTextContents();
    assert.equal(logs.length, 3);
    assert.match(logs[0], /^Transfer of 42, from 0xf39fd6e5…ffb92266/);
    await page.getByRole('button', { name: 'Show its proof' }).first().click();
    await fits(1);
    assert.match(await page.textContent('#explorer .trail'), /receipts root/);
    assert.equal(await page.locator('#explorer .standing .badge').textContent(), 'proven');
  });
});

test('an account that does not exist is proven to be empty, and text that is no address is refused in words', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(site, async (page) => {
    const input = page.getByLabel('Address of an account');
    await input.fill(`0x${'12'.repeat(20)}`);
    await input.press('Enter');
    await page.waitForFunction(() => document.querySelector('#explorer .side.good .value')?.textContent === '0 RBTC');
    assert.match(await page.locator('#explorer .trail').textContent(), /nothing at this place/);
    await input.fill('0x12');
    await input.press('Enter');
    await page.waitForSelector('#explorer .note.input');
    assert.match(await page.locator('#explorer .note.input').textContent(), /^your input .*40 hexadecimal digits/);
  });
});
