// The pictures of README.md, docs/page.md and docs/tour.md, by the clicks that the tour names.
// PAGE_PICTURES=1 cargo xtask test "tests: page" makes all of them anew.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { animated } from './lib/animation.mjs';
import { startBrowser } from './lib/browser.mjs';
import { find, has, onPage } from './lib/page.mjs';
import { call, serveFolder, startProgram } from './lib/site.mjs';

const LOOK = { viewport: { width: 900, height: 760 }, colorScheme: 'light', reducedMotion: 'reduce' };
const BYTES = { png: 100_000, svg: 400_000 };

/** Where readers of the tour open the chain and the light client, whatever the ports are here. */
const CHAIN = 'http://127.0.0.1:4444';
const LIGHT = 'http://127.0.0.1:4454';

const fileOf = (name) => new URL(`../../${name}`, import.meta.url);

/** Writes a picture where that is wanted; it must be small, and the document must show it. */
function keep(name, bytes, ...documents) {
  const limit = BYTES[name.split('.').at(-1)];
  assert.ok(bytes.length < limit, `${name} has ${bytes.length} bytes, at most ${limit}`);
  for (const document of documents) {
    const path = document.startsWith('docs/') ? name.replace('docs/', '') : name;
    assert.match(readFileSync(fileOf(document), 'utf8'), new RegExp(`!\\[[^\\]]{20,}\\]\\(${path}\\)`), `${document} shows ${name}, with words for who cannot see it`);
  }
  if (process.env.PAGE_PICTURES) writeFileSync(fileOf(name), bytes);
  else readFileSync(fileOf(name));
}

/** The part of the page from the top of one element to the bottom of another, over the whole width. */
async function part(page, from, to, margin = 16) {
  const [{ y }, end] = await Promise.all([from, to].map((selector) => page.locator(selector).first().boundingBox()));
  const scrolled = await page.evaluate(() => scrollY);
  const top = Math.max(0, Math.floor(y + scrolled - margin));
  return { x: 0, y: top, width: LOOK.viewport.width, height: Math.ceil(end.y + scrolled + end.height + margin - top) };
}

/** Lets the bar at the top scroll away. */
const looseBar = (page) => page.evaluate(() => { document.querySelector('.top').style.position = 'static'; });

/** A picture of a part of the page. */
async function picture(page, from, to, margin) {
  await looseBar(page);
  return page.screenshot({ animations: 'disabled', fullPage: true, clip: await part(page, from, to, margin) });
}

let browser, sites;
const stops = [];
before(async () => {
  const chain = await startProgram('dev');
  const light = await startProgram('light', '--network', 'regtest', '--upstream', chain.url);
  const [chainPage, lightPage] = await Promise.all([chain, light].map(({ url }) => serveFolder(url)));
  stops.push(chainPage.stop, lightPage.stop, light.stop, chain.stop);
  const map = [[CHAIN, chainPage], [LIGHT, lightPage]].map(([shown, { url }]) => `MAP ${new URL(shown).host} ${new URL(url).host}`);
  browser = await startBrowser(`--host-resolver-rules=${map.join(', ')}`);
  sites = { chain: { url: CHAIN, node: chain.url }, light: { url: LIGHT, node: light.url } };
});
after(async () => {
  await browser?.close();
  for (const stop of stops) await stop();
});

/** Presses the button of the first screen, and waits until the liar is caught. */
async function lie(page) {
  await page.getByRole('button', { name: 'Make a node lie' }).click();
  await page.waitForFunction(() => document.querySelector('#shown')?.textContent === '1,010,001.6 RBTC');
  assert.match(await page.textContent('#demo .side.good'), /liar caught.*10,001\.6 RBTC/s);
}

test('README moves: a node lies, a wallet shows the lie, the page catches the liar', async () => {
  await onPage(browser, sites.chain, async (page) => {
    const session = await page.context().newCDPSession(page);
    // From the heading on: no bar, and room for the step that broke.
    const size = { width: LOOK.viewport.width, height: 680 };
    const top = Math.round((await page.locator('h1').boundingBox()).y) - 20;
    const shot = async () => {
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80, clip: { x: 0, y: top, ...size, scale: 1 } });
      return Buffer.from(data, 'base64');
    };
    const middle = async (locator) => {
      const { x, y, width, height } = await locator.boundingBox();
      return { x: x + width / 2, y: y - top + height / 2 };
    };
    const frames = [{ image: await shot(), seconds: 3, press: await middle(page.locator('#make-lie')) }];
    await lie(page);
    const step = page.getByText('Show me the step');
    frames.push({ image: await shot(), seconds: 3, press: await middle(step) });
    await step.click();
    frames.push({ image: await shot(), seconds: 4 });
    assert.equal(new Set(frames.map(({ image }) => image.toString('base64'))).size, 3);
    keep('docs/tour/lie.svg', animated(frames, { ...size, label: 'A node lies about a balance; a wallet shows the lie, the page names the liar' }), 'README.md');
  }, { ...LOOK, deviceScaleFactor: 2 });
});

test('the moving picture stands still for who asks for less motion', async (t) => {
  const page = await browser.newPage({ reducedMotion: 'reduce' });
  t.after(() => page.close());
  const moving = async () => {
    await page.goto(fileOf('docs/tour/lie.svg').href);
    return page.evaluate(() => document.getAnimations().length);
  };
  assert.equal(await moving(), 0);
  assert.deepEqual(await page.evaluate(() => Array.from(document.querySelectorAll('image, circle'), (part) => getComputedStyle(part).opacity)), ['1', '1', '1', '0', '0']);
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  assert.equal(await moving(), 4);
});

test('the page, for its own document', async () => {
  await onPage(browser, sites.chain, async (page) => {
    await page.waitForSelector('#honest');
    keep('docs/page.png', await picture(page, '.top', '#search'), 'docs/page.md');
  }, LOOK);
});

test('tour of wallets: the step at which the lie breaks', async () => {
  await onPage(browser, sites.chain, async (page) => {
    await lie(page);
    await page.getByText('Show me the step').click();
    keep('docs/tour/wallet.png', await picture(page, '#demo', '#demo'), 'docs/tour.md');
  }, LOOK);
});

/** The contract of the tour, in bytes, and its ABI. */
const COUNTER = /const bytecode = '(0x[0-9a-f]+)'/.exec(readFileSync(fileOf('docs/tour.md'), 'utf8'))?.[1];
const ABI = [
  { type: 'function', name: 'number', stateMutability: 'view', inputs: [], outputs: [{ type: 'uint256' }] },
  { type: 'function', name: 'increment', stateMutability: 'nonpayable', inputs: [], outputs: [] },
];

test('tour of contracts: an answer of the contract, proven', async () => {
  const { node } = sites.chain;
  const [from] = await call(node, 'eth_accounts');
  const hash = await call(node, 'eth_sendTransaction', { from, data: COUNTER, gas: '0x5b8d80' });
  const { contractAddress: to } = await call(node, 'eth_getTransactionReceipt', hash);
  await call(node, 'eth_sendTransaction', { from, to, data: '0xd09de08a', gas: '0x5b8d80' });
  await onPage(browser, sites.chain, async (page) => {
    await find(page, to, 'Contract');
    await page.getByLabel('ABI').fill(JSON.stringify(ABI));
    await page.getByLabel('ABI').evaluate((field) => { field.scrollLeft = 0; });
    await page.getByRole('button', { name: 'Show the functions' }).click();
    await page.getByRole('button', { name: 'Ask and prove' }).first().click();
    await page.waitForFunction(() => document.querySelector('#page .function .side.good .value')?.textContent === '1');
    keep('docs/tour/contract.png', await picture(page, '#page section[aria-label=Functions] .form', '#page .function'), 'docs/tour.md');
  }, LOOK);
});

test('tour of operators: what the client in the tab says of the node that serves the page', async () => {
  const { node } = sites.light;
  await call(sites.chain.node, 'evm_mine');
  const head = await call(sites.chain.node, 'eth_blockNumber');
  while (await call(node, 'eth_blockNumber') !== head) await new Promise((resolve) => setTimeout(resolve, 50));
  await onPage(browser, sites.light, async (page) => {
    await page.getByText('The light client, as this page sees it').click();
    // The looks at a node are some seconds apart.
    await page.waitForFunction(() => /yes\s*none/.test(document.querySelector('#status table')?.textContent ?? ''));
    assert.match(await page.textContent('#status table'), /127\.0\.0\.1:4454/);
    keep('docs/tour/operator.png', await picture(page, '#search', '#status table', 4), 'docs/tour.md');
  }, LOOK);
});

test('tour of auditors: a block of the main network, byte by byte', async () => {
  await onPage(browser, sites.chain, async (page) => {
    await page.getByRole('button', { name: 'Main network, block 9,000,000' }).click();
    await has(page, '.drawing .verdict.good', 4);
    await looseBar(page);
    await page.evaluate(() => scrollBy(0, document.querySelector('#proof .drawing').getBoundingClientRect().top - 16));
    await page.locator('.bytes', { hasText: 'Merkle root' }).first().hover();
    await page.waitForFunction(() => document.querySelectorAll('.bytes.lit').length === 2);
    keep('docs/tour/auditor.png', await page.screenshot({ animations: 'disabled' }), 'docs/tour.md');
  }, { ...LOOK, viewport: { width: 900, height: 550 } });
});
