// The first screen: a lie, the search, and the line about the chain.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { behind, onPage, withPayment } from './lib/page.mjs';
import { call, startSite } from './lib/site.mjs';
import { openSources } from './lib/source.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

test('the first screen: one press, a node lies, a wallet shows the lie, and the page names the liar', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await call(site.node, 'evm_mine');
  await onPage(browser, site, async (page) => {
    await page.getByRole('button', { name: 'Make a node lie' }).click();
    await page.waitForFunction(() => document.querySelector('#shown')?.textContent === '1,010,001.6 RBTC');
    assert.equal(await page.textContent('#noticed'), '10,001.6 RBTC');
    assert.match(await page.textContent('#demo .side.lie'), /wrong/);
    const grounds = await page.evaluate(() => ['.side.lie', '.side.lie .badge'].map((part) => getComputedStyle(document.querySelector(part)).backgroundColor));
    assert.notEqual(grounds[0], grounds[1], 'the badge stands out from the card');
    const [lie, answer, text] = await page.evaluate(() => ['#shown', '#noticed', 'body'].map((part) => getComputedStyle(document.querySelector(part)).color));
    assert.notEqual(lie, text, 'the lie is alarming');
    assert.equal(answer, text, 'the proven answer is calm');
    assert.match(await page.textContent('#demo .side.good'), /liar caught.*The node was caught, and a second, honest node proved this balance\./s);
    assert.match(await page.textContent('#demo .asked'), /Asked of a made-up node in this tab, which lies now\.$/);
    assert.doesNotMatch(await page.textContent('#demo'), /Node [AB]/, 'the nodes of the section Tamper have names, this one has none');
    await page.getByRole('button', { name: 'Make the node honest again' }).click();
    await page.waitForFunction(() => document.querySelector('#shown')?.textContent === '10,001.6 RBTC');
    assert.equal(await page.locator('#demo .side.lie').count(), 0);
    assert.match(await page.textContent('#status .strip-line'), new RegExp(`${new URL(site.url).host}: no lie caught so far`), 'the server is not accused of the lie');
  });
});

test('the status line says the newest block, its age, honest nodes, what the chain rests on, and what a forgery costs', async (t) => {
  const { site } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#age');
    assert.match(await page.textContent('#status .strip-line'), /development chain#2 newest block shown, (just now|\d+ s ago).*[\d.:]+: no lie caught so far.*checked from block 0, which is trusted.*a false chain costs next to nothing: its work is not Bitcoin’s/);
  });
  const sources = await openSources();
  t.after(sources.close);
  const { forgery, progressWords } = await sources.load('views/status.ts');
  assert.equal(progressWords({ currentBlock: 0, highestBlock: 0, startingBlock: 0 }, 'node.example'), 'Asking node.example for headers…', 'never block 0 of 0');
  assert.equal(progressWords({ currentBlock: 1200, highestBlock: 9000, startingBlock: 0, secondsLeft: 79.5 }, 'node.example'), 'Block 1,200 of 9,000 checked, about 80 s left.');
  // The work of a header whose bits say 0x1d00ffff is 2^32 tries and a little.
  const header = `0x${'00'.repeat(72)}ffff001d${'00'.repeat(4)}`;
  assert.equal(forgery(`0x${(3n * (1n << 32n) + (1n << 20n)).toString(16)}`, header), 'the work of 3.0 Bitcoin blocks');
  assert.equal(forgery(null, header), undefined);
  assert.equal(forgery('0x1', '0x12'), undefined);
});

test('the newest block and its age are told from its header, also by a node that shows no block but its first', async (t) => {
  const isWithheld = ({ method, params }) => method.startsWith('eth_getBlockBy') && params[0] !== '0x0';
  const withholding = (text, body) => {
    const asked = [JSON.parse(body)].flat();
    const answers = [JSON.parse(text)].flat().map((answer) => (asked.some((call) => call.id === answer.id && isWithheld(call)) ? { ...answer, result: null } : answer));
    return JSON.stringify(text.startsWith('[') ? answers : answers[0]);
  };
  const site = await behind(t, { tamper: withholding });
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#age');
    assert.equal(await page.textContent('#head'), '#2');
  });
});

test('what is looked for leads to its page, and what is nothing of the kind is the visitor’s input', async (t) => {
  const sources = await openSources();
  t.after(sources.close);
  const { routeOf } = await sources.load('views/search.ts');
  const [address, hash] = [`0x${'aB'.repeat(20)}`, `0x${'12'.repeat(32)}`];
  assert.deepEqual([' #9,000,000 ', '0x10', 'latest', address, hash].map(routeOf), ['#/block/9000000', '#/block/16', '#/block/latest', `#/address/${address.toLowerCase()}`, `#/tx/${hash}`]);
  for (const wrong of ['', 'hello', '0x', `${address}0`, '-1', '<img src=x>']) assert.throws(() => routeOf(wrong), wrong === '0x' || wrong.startsWith('0xaB') ? /here are/ : /write an address/, wrong);
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.getByLabel('Address, transaction or block').fill('0x1234567890abcdef');
    await page.keyboard.press('Enter');
    assert.match(await page.textContent('#search .note.input'), /^your input An address has 40 hexadecimal digits after 0x, a transaction or a block 64; here are 16/);
    assert.equal(await page.getByLabel('Address, transaction or block').inputValue(), '0x1234567890abcdef');
  });
});
