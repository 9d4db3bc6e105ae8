// The playground on a block of the server's network.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { answering } from './lib/contracts.mjs';
import { behind, changing, onPage } from './lib/page.mjs';
import { call, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const OFFER = 'Go on from the network';

const button = (page, name) => page.locator('#playground').getByRole('button', { name, exact: true });
const line = (page, text) => page.waitForFunction((part) => document.querySelector('#playground .log li')?.textContent.includes(part), text);
const told = (page, text) => page.waitForFunction((part) => document.querySelector('#playground [role=status]')?.textContent.includes(part), text);

/** The height of a node once the page shows it. */
async function shownHead(page, url) {
  const head = Number(await call(url, 'eth_blockNumber'));
  await page.waitForFunction((text) => document.querySelector('#head')?.textContent === text, `#${head}`);
  return head;
}

test('a chain begins on the newest block, by the keyboard, and the network stays as it is', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const [from] = await call(site.node, 'eth_accounts');
  const hash = await call(site.node, 'eth_sendTransaction', { from, data: answering('from the network'), gas: '0x7a120' });
  const { contractAddress } = await call(site.node, 'eth_getTransactionReceipt', hash);
  await onPage(browser, site, async (page) => {
    const head = await shownHead(page, site.node);
    await button(page, OFFER).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.matches('#playground input'));
    await page.keyboard.press('Enter');
    await page.waitForSelector('#fork .badge.good');
    const standing = await page.textContent('#fork');
    assert.ok(standing.includes(`after block ${head} of development chain`) && standing.includes('proven'), standing);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'fork', 'the keyboard goes on from what was told');
    await page.waitForFunction((text) => document.querySelector('#height')?.textContent === text, String(head));
    await button(page, 'Send').click();
    await line(page, `Account 1 paid 1 RBTC to Account 2, in block ${head + 1}`);
    await page.getByLabel('Address of a contract of the network').fill(contractAddress);
    await button(page, 'Use it').click();
    await line(page, 'can be called');
    await page.getByLabel('Function', { exact: true }).fill('0x');
    await button(page, 'Ask').click();
    await line(page, 'from the network');
    // The light client of the page does not follow this chain.
    await button(page, 'Take a snapshot').click();
    await button(page, 'Mine 10').click();
    await button(page, `Back to block ${head + 1}`).click();
    await line(page, `Everything is as it was at block ${head + 1}`);
    assert.equal(Number(await call(site.node, 'eth_blockNumber')), head);
    await button(page, 'Another chain').click();
    await button(page, 'Start a chain in this tab').click();
    await page.waitForFunction(() => document.querySelector('#height')?.textContent === '5');
    assert.equal(await page.locator('#fork').count(), 0);
  });
});

test('a node that proves no state is refused, and what it says has a colour of its own', async (t) => {
  const none = () => ({ error: { code: -32601, message: 'method not found' } });
  const changes = ['eth_getProof', 'rsk_getProof', 'rootlight_getWitness'].map((method) => changing(method, none));
  const site = await behind(t, { tamper: (text, body) => changes.reduce((changed, change) => change(changed, body), text) });
  await onPage(browser, site, async (page) => {
    const head = await shownHead(page, site.node);
    await button(page, OFFER).click();
    await button(page, 'Begin').click();
    await told(page, 'proves no balances, code and storage, so the chain was not started');
    await button(page, 'Begin without proofs').click();
    await page.waitForSelector('#fork.warn .badge.warn');
    assert.match(await page.textContent('#fork'), /unproven.*nothing proves them/);
    await button(page, 'Send').click();
    await line(page, `Account 1 paid 1 RBTC to Account 2, in block ${head + 1}`);
  });
});

test('a node that writes into an error that it proves no state is refused with its words', async (t) => {
  const error = { code: -32000, message: 'busy, and proves no state' };
  const changes = ['eth_getProof', 'rsk_getProof', 'rootlight_getWitness'].map((method) => changing(method, () => ({ error })));
  const site = await behind(t, { tamper: (text, body) => changes.reduce((changed, change) => change(changed, body), text) });
  await onPage(browser, site, async (page) => {
    await shownHead(page, site.node);
    await button(page, OFFER).click();
    await button(page, 'Begin').click();
    await told(page, 'upstream error -32000: busy, and proves no state');
    assert.equal(await button(page, 'Begin without proofs').count(), 0);
  });
});

test('a server that turns to another network while a chain goes on from it gives that chain nothing', async (t) => {
  const id = { chain: '0x21' };
  const site = await behind(t, { tamper: changing('eth_chainId', () => ({ result: id.chain })) });
  const unread = '0x00000000000000000000000000000000000070ce';
  await onPage(browser, site, async (page) => {
    await shownHead(page, site.node);
    await button(page, OFFER).click();
    await button(page, 'Begin').click();
    await page.waitForSelector('#fork .badge.good');
    id.chain = '0x1f';
    await page.waitForSelector('#source[data-trouble]', { timeout: 60_000 });
    await page.getByLabel('Address of a contract of the network').fill(unread);
    await button(page, 'Use it').click();
    await line(page, 'it is of the network with chain id 31, not 33');
  });
});

test('no other host is asked, and an address where no node is gives a reason', async (t) => {
  const site = await behind(t, { gate: (response, { url }) => url === '/nothing' && Boolean(response.writeHead(404).end()) });
  await onPage(browser, site, async (page) => {
    await shownHead(page, site.node);
    await button(page, OFFER).click();
    for (const [node, words] of [['https://node.example/', 'may ask its own host only'], ['//[', 'may ask its own host only'], ['/nothing', 'HTTP status 404: check the path of its address']]) {
      await page.getByLabel('Node', { exact: true }).fill(node);
      await button(page, 'Begin').click();
      await told(page, words);
    }
  });
});
