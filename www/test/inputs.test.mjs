// Wrong and hostile inputs of the playground, also of one that goes on from the network, and of pages that others' contracts fill.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { answering, logging } from './lib/contracts.mjs';
import { NAMES, safe } from './lib/hostile.mjs';
import { behind, onPage, openForm } from './lib/page.mjs';
import { call, serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const PHONE = { viewport: { width: 360, height: 740 } };

const button = (page, name) => page.locator('#playground').getByRole('button', { name, exact: true });

/** Elements that no text may become. */
const HARMFUL = 'img, script, svg, iframe, b';

/** Checks that a part of the page has taken no text for markup, and has not become wider than the screen. */
async function staysText(page, part, about) {
  assert.equal(await page.locator(part).locator(HARMFUL).count(), 0, about);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, about);
  assert.ok((await page.evaluate((within) => document.querySelector(within).textContent.length, part)) < 20_000, `${about}: nothing is repeated at length`);
}

/** Presses a button of the playground, and waits for a new line with these words. */
async function told(page, press, words) {
  await page.evaluate(() => { for (const line of document.querySelectorAll('#playground .log li')) line.dataset.seen = 'yes'; });
  await press();
  await page.waitForFunction((source) => [...document.querySelectorAll('#playground .log li:not([data-seen])')].some((line) => new RegExp(source).test(line.textContent)), words.source);
}

/** Waits until the page shows the newest block of its node. */
async function shownHead(page, site) {
  const head = Number(await call(site.node, 'eth_blockNumber'));
  await page.waitForFunction((text) => document.querySelector('#head')?.textContent === text, `#${head}`);
}

/** Fills a field at once: typing megabytes takes long. */
const put = (page, label, text) => page.locator('#playground').getByLabel(label, { exact: true }).evaluate((field, value) => { field.value = value; }, text);

const LONG = 'x'.repeat(2_000);
const HUGE = '9'.repeat(400);

test('wrong payments, code, ABIs and calls are refused in words, and the chain goes on', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground textarea');
    for (const amount of ['', '-1', HUGE, '1e9', LONG, ...NAMES]) {
      await put(page, 'Amount in RBTC', amount);
      await told(page, () => button(page, 'Send').click(), /write an amount such as 1\.5/);
    }
    await put(page, 'Amount in RBTC', '999999999999');
    await told(page, () => button(page, 'Send').click(), /insufficient funds/);
    await page.locator('#playground').getByLabel('Contract', { exact: true }).selectOption({ label: 'Bytecode of your own' });
    for (const code of ['', '0x', '0x0', LONG, `0x${'fe'.repeat(2_500_000)}`, ...NAMES]) {
      await put(page, 'Its code', code);
      await told(page, () => button(page, 'Deploy').click(), /✗/);
      const [said] = await page.locator('#playground .log li').allTextContents();
      assert.ok(said.length < 120 && !/[\u202a-\u202e\u2066-\u2069]/.test(said), said);
      await staysText(page, '#playground .log', `code of ${code.length} characters`);
    }
    await put(page, 'Its code', '0x600160005260206000f3');
    for (const [abi, words] of [['hello', /ABI is JSON/], ['['.repeat(5_000_000), /5000000 characters, at most 500000/], ['{}', /no list of functions/]]) {
      await put(page, 'Its ABI', abi);
      await told(page, () => button(page, 'Deploy').click(), words);
    }
    await put(page, 'Its ABI', JSON.stringify([{ type: 'constructor', inputs: [{ name: NAMES[0], type: 'uint256' }] }, { type: 'function', name: 'f', inputs: [] }]));
    for (const [value, words] of [[LONG, /no whole number/], [HUGE, /no whole number/], [NAMES[0], /no whole number/], ['-1', /-1 does not fit uint256/], [String(2n ** 256n), /does not fit uint256/]]) {
      await put(page, 'Arguments of its constructor', value);
      await told(page, () => button(page, 'Deploy').click(), words);
    }
    await put(page, 'Arguments of its constructor', String(2n ** 256n - 1n));
    await told(page, () => button(page, 'Deploy').click(), /Bytecode of your own is at/);
    await page.locator('#playground').getByRole('button', { name: 'by hand', exact: true }).click();
    for (const method of [LONG, 'f(uint256', `0x${'0'.repeat(2_001)}`, ...NAMES]) {
      await put(page, 'Function', method);
      await told(page, () => button(page, 'Ask').click(), /✗/);
      await staysText(page, '#playground .log', `function ${method.slice(0, 20)}`);
    }
    await put(page, 'Amount in RBTC', '1');
    await told(page, () => button(page, 'Send').click(), /paid 1 RBTC/);
  }, PHONE);
});

test('an ABI with hostile names shows them as text', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  const entry = (name, input) => ({ type: 'function', name, stateMutability: 'view', inputs: [{ name: input, type: 'uint256' }], outputs: [] });
  // Names that no compiler gives a function are left out.
  const abi = [...NAMES.map((name) => entry(name, 'x')), ...NAMES.map((name, at) => entry(`f${at}`, name))];
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground textarea');
    await page.locator('#playground').getByLabel('Contract', { exact: true }).selectOption({ label: 'Bytecode of your own' });
    await put(page, 'Its code', '0x600160005260206000f3');
    await put(page, 'Its ABI', JSON.stringify(abi));
    await told(page, () => button(page, 'Deploy').click(), /Bytecode of your own is at/);
    assert.deepEqual(await page.locator('#playground .tabs button').allTextContents(), [...NAMES.map((_, at) => `f${at}`), 'by hand']);
    for (const at of NAMES.keys()) {
      await button(page, `f${at}`).click();
      await staysText(page, '#playground', `the input of f${at}`);
      const shown = await page.locator('#playground .calls').textContent();
      assert.ok(!/[\u202a-\u202e\u2066-\u2069]/.test(shown), 'no letter turns the direction of the text');
    }
  }, PHONE);
});

test('a chain that goes on from the network takes no hostile node, contract or ABI', async (t) => {
  // Only the address of the page answers.
  const site = await behind(t, { gate: (response, { url }) => url !== '/' && response.req.method === 'POST' && Boolean(response.writeHead(404).end()) });
  const [from] = await call(site.node, 'eth_accounts');
  const hash = await call(site.node, 'eth_sendTransaction', { from, data: answering(NAMES[0]), gas: '0x7a120' });
  const { contractAddress } = await call(site.node, 'eth_getTransactionReceipt', hash);
  await onPage(browser, site, async (page) => {
    await shownHead(page, site);
    await button(page, 'Go on from the network').click();
    for (const node of [LONG, 'javascript:alert(1)', 'data:text/html,<b>', 'http://user:secret@node.example/', ...NAMES]) {
      await put(page, 'Node', node);
      await button(page, 'Begin').click();
      await page.waitForFunction(() => document.querySelector('#playground [role=status] .badge.bad'));
      const status = await page.textContent('#playground [role=status]');
      assert.ok(!status.includes('secret'), status);
      await staysText(page, '#playground', node.slice(0, 30));
      await page.evaluate(() => document.querySelector('#playground [role=status]').replaceChildren());
    }
    await put(page, 'Node', '');
    await button(page, 'Begin').click();
    await page.waitForSelector('#fork .badge.good');
    for (const address of ['', LONG, `0x${'0'.repeat(40)}`, from, ...NAMES]) {
      await put(page, 'Address of a contract of the network', address);
      await told(page, () => button(page, 'Use it').click(), /an address is 0x and 40|no contract at this address/);
    }
    await put(page, 'Address of a contract of the network', contractAddress);
    await put(page, 'The contract’s ABI', '['.repeat(5_000_000));
    await told(page, () => button(page, 'Use it').click(), /5000000 characters, at most 500000/);
    await put(page, 'The contract’s ABI', '');
    await told(page, () => button(page, 'Use it').click(), /can be called/);
    await page.getByLabel('Function', { exact: true }).fill('0x');
    await told(page, () => button(page, 'Ask').click(), /answers/);
    assert.ok((await page.textContent('#playground .log')).includes(NAMES[0]), 'the answer is text');
    await staysText(page, '#playground', 'a hostile answer');
  }, PHONE);
});

test('where storage is denied and workers are forbidden, a chain goes on from the network too', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const script = () => {
    for (const name of ['indexedDB', 'localStorage', 'sessionStorage', 'caches']) {
      Object.defineProperty(globalThis, name, { get() { throw new DOMException('denied', 'SecurityError'); } });
    }
    for (const name of ['Worker', 'SharedWorker']) {
      globalThis[name] = class {
        constructor() {
          throw new DOMException('denied', 'SecurityError');
        }
      };
    }
  };
  await onPage(browser, site, async (page) => {
    await button(page, 'Go on from the network').click();
    await button(page, 'Begin').click();
    await page.waitForSelector('#fork .badge.good');
    await told(page, () => button(page, 'Send').click(), /paid 1 RBTC/);
  }, { script });
});

test('a token’s page shows a hostile name and symbol as text', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const [from] = await call(site.node, 'eth_accounts');
  await onPage(browser, site, async (page) => {
    for (const name of NAMES) {
      const hash = await call(site.node, 'eth_sendTransaction', { from, data: answering(name), gas: '0x5b8d80' });
      const { contractAddress } = await call(site.node, 'eth_getTransactionReceipt', hash);
      await shownHead(page, site);
      await page.evaluate((to) => { location.hash = to; }, `#/token/${contractAddress}/${from}`);
      const shown = safe(name.slice(0, 200));
      await page.waitForFunction((text) => [...document.querySelectorAll('#page dd')].some((dd) => dd.textContent === text), shown);
      await staysText(page, '#page', shown.slice(0, 30));
    }
  }, PHONE);
});

test('a query for logs takes no hostile contract or count, and hostile logs stay text', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const [from] = await call(site.node, 'eth_accounts');
  for (const name of NAMES) await call(site.node, 'eth_sendTransaction', { from, data: logging(name), gas: '0x5b8d80' });
  await onPage(browser, site, async (page) => {
    await openForm(page, 'Logs');
    const form = page.locator('#explorer form');
    for (const [contract, blocks] of [[LONG, '10'], ...NAMES.map((name) => [name, '10']), ['', '0'], ['', '-1'], ['', HUGE], ['', LONG]]) {
      await form.getByLabel('Address of the contract').fill(contract);
      await form.getByLabel('How many blocks').evaluate((field, value) => { field.value = value; }, blocks);
      await form.getByRole('button').click();
      await page.waitForSelector('#explorer .note.input');
      await staysText(page, '#explorer', `${contract.slice(0, 30)} ${blocks.slice(0, 30)}`);
      await page.evaluate(() => document.querySelector('#explorer .note.input').remove());
    }
    await shownHead(page, site);
    await page.evaluate(() => { location.hash = '#/logs/all/100'; });
    await page.waitForFunction((count) => document.querySelectorAll('#page li').length >= count, NAMES.length);
    await staysText(page, '#page', 'logs');
    for (const name of NAMES) {
      await page.evaluate((to) => { location.hash = to; }, `#/logs/${encodeURIComponent(name.slice(0, 500))}/10`);
      await page.waitForFunction(() => document.querySelector('#page .note.input'));
      await staysText(page, '#page', name.slice(0, 30));
      await page.evaluate(() => { location.hash = '#/logs/all/100'; });
      await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Logs');
    }
  }, PHONE);
});
