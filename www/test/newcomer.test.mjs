// Texts that a reader meets first: none praises or accuses without a reason, and none needs words of the field.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { answering } from './lib/contracts.mjs';
import { behind, find, onPage, openForm } from './lib/page.mjs';
import { call, serveFolder, startProgram, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Waits until an element's text matches. */
const says = (page, selector, pattern, timeout = 15_000) =>
  page.waitForFunction(([selector, source]) => new RegExp(source, 's').test(document.querySelector(selector)?.textContent ?? ''), [selector, pattern.source], { timeout });

/** Deploys code, and returns the contract's address. */
async function deploy(node, data) {
  const [from] = await call(node, 'eth_accounts');
  const hash = await call(node, 'eth_sendTransaction', { from, data, gas: '0x5b8d80' });
  return (await call(node, 'eth_getTransactionReceipt', hash)).contractAddress;
}

test('a chain of one block is neither praised nor offered another one, and the search names a block that exists', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#honest');
    assert.match(await page.textContent('#status .strip-line'), /trusted.*nothing to check yet: the first proof comes with the next block/);
    assert.equal(await page.locator('#search input').getAttribute('placeholder'), '0x… or 0');
    assert.equal(await page.getByRole('button', { name: 'Use a practice chain in this tab' }).count(), 0);
    await call(site.node, 'evm_mine');
    await says(page, '#honest', /^no lie caught so far$/);
    await page.waitForFunction(() => document.querySelector('#search input').placeholder === '0x… or 1');
  });
});

test('a block shows no proof of nothing', async (t) => {
  const site = await behind(t);
  await onPage(browser, site, async (page) => {
    await says(page, '.about', /nothing on top yet/);
    assert.doesNotMatch(await page.textContent('.about'), /Work on top/);
    await page.locator('.chain .block').nth(1).click();
    await says(page, '.about', /1 block on top.*Work on top[1-9]/);
    await find(page, '2', 'Block 2');
    const steps = await page.locator('#page .rung').allTextContents();
    assert.match(steps[1], /The header contains the hash of the coinbase alone/);
    assert.match(steps[4], /The newest block: none on top yet/);
    assert.match(await page.textContent('#page .page-head'), /no block on top$/);
    await find(page, '1', 'Block 1');
    assert.match((await page.locator('#page .rung').allTextContents())[4], /1 block on top/);
  });
});

test('what answers as no node does is told without words of the field', async (t) => {
  const site = await serveFolder(undefined, undefined, (response) => Boolean(response.end('<!doctype html>')));
  t.after(site.stop);
  const { page, close } = await openPage(browser, `${site.url}/`);
  t.after(close);
  await page.waitForSelector('#source[data-trouble=absent]');
  assert.match(await page.textContent('#source'), /There is no node at .* \(something answers there, but not as a node does\)/);
  assert.doesNotMatch(await page.textContent('#source'), /JSON/);
});

test('a light client is called one, with its upstreams, and not honest for an upstream that is gone', async (t) => {
  const dev = await startProgram('dev');
  t.after(dev.stop);
  await call(dev.url, 'hardhat_mine', '0x2');
  const site = await startSite('light', '--network', 'regtest', '--upstream', dev.url);
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await says(page, '#status .strip-line', /the server’s light client: no lie caught so far.*its upstream: 1 of 1 honest/);
    await page.getByText('The light client, as this page sees it').click();
    assert.match(await page.getByRole('region', { name: 'Upstreams of the light client' }).textContent(), new RegExp(`${dev.url}answers`));
    await dev.stop();
    await says(page, '#served', /^its only upstream does not answer$/, 60_000);
    assert.doesNotMatch(await page.textContent('#status .strip-line'), /its upstream: 1 of 1/);
  });
});

test('upstreams that a light client names stay text, whatever it says of them', async (t) => {
  const { openSources } = await import('./lib/source.mjs');
  const sources = await openSources();
  t.after(sources.close);
  const { servedOf, honest, silent } = await sources.load('chain/served.ts');
  assert.deepEqual(servedOf('nothing'), []);
  const served = servedOf([null, { name: '\u202egnp', resting: null, lies: 0 }, { name: 'x'.repeat(5_000), resting: 'gone', lies: 'many' }, { name: 'liar', resting: null, lies: 3 }]);
  assert.deepEqual(served.map(({ name }) => name), ['an upstream', '\\u{202e}gnp', 'x'.repeat(200), 'liar']);
  assert.deepEqual([honest(served), silent(served), servedOf(Array(1_000).fill({})).length], [2, 1, 50]);
});

test('a contract is offered as a token only if it answers as one, and a holder is explained', async (t) => {
  const plain = await behind(t);
  const hello = await deploy(plain.node, answering('hello'));
  await onPage(browser, plain, async (page) => {
    await find(page, hello, 'Contract');
    await page.waitForSelector('#page [data-token=false]', { state: 'attached' });
    assert.equal(await page.getByRole('link', { name: 'as a token' }).count(), 0);
  });
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await openForm(page, 'Token');
    const hint = /Whose balance is asked for/;
    assert.match(await page.textContent('#explorer .card'), hint);
    await find(page, await page.getByLabel('Address of the token').inputValue(), 'Contract');
    await page.getByRole('link', { name: 'as a token' }).click();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Token');
    assert.match(await page.textContent('#page .form'), hint);
  });
});

test('the button of a function looks like one that works, and says what asking a change does', async (t) => {
  const site = await behind(t);
  const hello = await deploy(site.node, answering('hello'));
  await onPage(browser, site, async (page) => {
    await find(page, hello, 'Contract');
    const abi = [['greet', 'view'], ['set', 'nonpayable']].map(([name, stateMutability]) => ({ type: 'function', name, stateMutability, inputs: name === 'set' ? [{ name: 'holder', type: 'address' }] : [], outputs: [] }));
    await page.getByLabel('ABI', { exact: true }).fill(JSON.stringify(abi));
    await page.getByRole('button', { name: 'Show the functions' }).click();
    const ground = (locator) => locator.evaluate((button) => getComputedStyle(button).backgroundColor);
    const ask = page.locator('#page .function').getByRole('button', { name: 'Ask and prove' });
    assert.equal(await ground(ask.first()), await ground(page.getByRole('button', { name: 'Prove it' })));
    const [reads, changes] = await page.locator('#page .function').allTextContents();
    assert.doesNotMatch(reads, /changes/);
    assert.match(changes, /holderType: address\..*Asked here it changes nothing/);
  });
});

/** Logs a transfer of 12,345 with each call. `decimals` are what the function of that name answers; without them it has none. */
function paying(decimals) {
  const transfer = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
  const logs = `61303960005233337f${transfer}60206000a300`;
  const begins = decimals === undefined ? '' : '60003560e01c63313ce56714';
  const place = ((begins.length + 6 + logs.length) / 2).toString(16).padStart(2, '0');
  const runtime = decimals === undefined ? logs : `${begins}60${place}57${logs}5b60${decimals.toString(16).padStart(2, '0')}60005260206000f3`;
  return `0x60${(runtime.length / 2).toString(16)}80600b6000396000f3${runtime}`;
}

test('logs lead to their block and contract, and count in the decimals that the token names', async (t) => {
  const site = await behind(t);
  const [from] = await call(site.node, 'eth_accounts');
  const [cents, bare] = [await deploy(site.node, paying(2)), await deploy(site.node, paying(undefined))];
  for (const to of [cents, bare]) await call(site.node, 'eth_sendTransaction', { from, to, gas: '0x5b8d80' });
  const sent = await call(site.node, 'eth_sendTransaction', { from, to: cents, gas: '0x5b8d80' });
  await onPage(browser, site, async (page) => {
    await page.evaluate(() => { location.hash = '#/logs/all'; });
    await page.waitForSelector('#page .log li:nth-child(3)');
    const logs = await page.locator('#page .log strong').allTextContents();
    assert.deepEqual(logs.map((log) => /^Transfer of ([^,]*(?:,\d+)*(?: units)?),/.exec(log)?.[1]), ['123.45', '12,345 units', '123.45']);
    assert.equal(await page.locator('#page .note.bad').count(), 0);
    assert.match(logs[0], /to 0x[0-9a-f]{8}…[0-9a-f]{8}$/, 'as short as everywhere');
    const first = page.locator('#page .log li').first();
    assert.equal(await first.getByRole('link', { name: '#7' }).getAttribute('href'), '#/block/7');
    await first.locator(`a[href="#/address/${cents}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Contract');
    await find(page, sent, 'Transaction');
    assert.match(await page.textContent('#page section[aria-label="Logs"]'), /Transfer of 123\.45,/);
  });
});
