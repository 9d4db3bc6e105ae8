// What the page says of an answer: proven, a lie, not to be proven, or trusted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { behind, changing, onPage, openForm } from './lib/page.mjs';
import { call, startSite } from './lib/site.mjs';
import { openSources } from './lib/source.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

test('a node that lies beside a proven answer is counted as caught', async (t) => {
  const site = await behind(t, { tamper: changing('eth_getBalance', () => ({ result: '0xde0b6b3a7640000' })) });
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#explorer .side.bad');
    await page.waitForFunction(() => document.querySelector('#honest')?.textContent === 'not honest');
    assert.match(await page.textContent('#status'), /1 lie caught/);
  });
});

test('a node that gives no answer is not accused', async (t) => {
  const site = await behind(t, { tamper: changing('eth_getBalance', () => ({ error: { code: -32000, message: 'busy' } })) });
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#explorer .side.good');
    assert.match(await page.textContent('#explorer .answer > .note'), /^The node gives no answer of its own/);
    assert.equal(await page.locator('#explorer .bad').count(), 0);
    assert.equal(await page.textContent('#honest'), 'no lie caught so far');
  });
});

test('the words of a node decide no verdict', async (t) => {
  const sources = await openSources();
  t.after(sources.close);
  const { plainly, verdictOf } = await sources.load('words.ts');
  const told = (text) => ({ code: -32002, message: `Resource unavailable: no proof of account 0x12: upstream error -32000: ${text}` });
  const refused = { code: 3, message: 'VM Exception while processing transaction: transaction reverted' };
  assert.deepEqual([told('execution reverted'), refused, { ...refused, code: -32015 }].map((error) => verdictOf(error, false)), ['unprovable', 'reverted', 'reverted']);
  assert.deepEqual([told('execution reverted'), refused].map((error) => verdictOf(error, true)), ['lie', 'lie'], 'no text hides a lie');
  for (const text of ['no RSKBLOCK: tag', 'receiptsRoot', 'node 0xab is missing', 'proof of work', 'all are stock nodes', 'is older than', 'timed out']) {
    assert.equal(plainly(told(text).message), 'The node gave no proof that holds. Another node may bring it.', text);
  }
  assert.match(plainly('header 0x12: no RSKBLOCK: tag'), /^No proof of work names this block/);
});

test('a node that answers for a proof that something reverted proves no revert', async (t) => {
  const errors = [{ code: -32000, message: 'execution reverted' }, { code: 3, message: 'execution reverted', data: '0x' }, { code: -32015, message: 'transaction reverted' }];
  for (const error of errors) {
    const methods = ['eth_getProof', 'rsk_getProof', 'rootlight_getWitness', 'rootlight_getBlockWitness'];
    const site = await behind(t, { tamper: (text, body) => methods.reduce((now, method) => changing(method, () => ({ error }))(now, body), text) });
    await onPage(browser, site, async (page) => {
      await openForm(page, 'Account');
      await page.waitForSelector('#explorer .note[data-verdict]');
      assert.equal(await page.getAttribute('#explorer .note[data-verdict]', 'data-verdict'), 'unprovable', JSON.stringify(error));
      assert.match(await page.textContent('#explorer .note'), /upstream error.*reverted/, 'the exact error names the node’s');
    });
  }
});

test('a node that cannot prove state is said to be one, and the first question is one that it can prove', async (t) => {
  const stock = ['eth_getProof', 'rsk_getProof', 'rootlight_getWitness', 'rootlight_getBlockWitness'];
  const site = await behind(t, { tamper: (text, body) => stock.reduce((now, method) => changing(method, () => ({ error: { code: -32601, message: 'method not found' } }))(now, body), text) });
  await onPage(browser, site, async (page) => {
    await page.waitForFunction(() => document.querySelector('#status')?.textContent.includes('cannot prove state'));
    await page.waitForSelector('#explorer .tab[aria-pressed=true]:last-child');
    await openForm(page, 'Account');
    await page.waitForSelector('#explorer .note.warn[data-verdict=unprovable]');
    assert.match(await page.textContent('#explorer .note'), /^cannot be proven The nodes of this page prove blocks/);
  });
});

test('what a chain starts from is trusted, not verified, and no work of Bitcoin is claimed for a development chain', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    assert.equal(await page.textContent('#level'), 'trusted');
    await page.waitForFunction(() => document.querySelector('.about .badge')?.textContent === 'trusted');
    await page.evaluate(() => { location.hash = '#/block/0'; });
    await page.waitForSelector('#same');
    assert.equal(await page.textContent('#same'), 'The same as the trusted block.');
    await page.evaluate(() => { location.hash = '#top'; });
    await call(site.node, 'evm_mine');
    await page.waitForFunction(() => document.querySelector('#level')?.textContent === 'proven');
    await page.getByRole('button', { name: 'Show the newest block' }).click();
    await page.waitForFunction(() => document.querySelector('.drawing')?.textContent.includes('No Bitcoin miner took part'));
    assert.doesNotMatch(await page.textContent('.drawing'), /Bitcoin header|A Bitcoin block/);
    assert.match(await page.textContent('.drawing'), /“RSKBLOCK:”.*hash of the Rootstock header/);
    assert.equal(await page.textContent('#cost'), 'next to nothing');
    assert.match(await page.textContent('#rests'), /block 0, which is trusted/);
    assert.match(await page.textContent('#status .levels:last-of-type'), /reverted.*lie refused.*trusted/);
    const colours = await page.evaluate(() => ['.network', '#level'].map((part) => getComputedStyle(document.querySelector(`#status ${part}`)).backgroundColor));
    assert.notEqual(colours[0], colours[1], 'a kind of chain is not in the colour of “proven”');
  });
});

test('native contracts are named, and the Bridge is no ordinary account', async (t) => {
  const site = await behind(t);
  await onPage(browser, site, async (page) => {
    await page.getByLabel('Address of an account').fill('0x0000000000000000000000000000000001000006');
    await page.getByRole('button', { name: 'Prove the account' }).click();
    await page.waitForFunction(() => document.querySelector('#explorer .side.good')?.textContent.includes('the Bridge, a native contract'));
  });
});

test('a lie that is the same in words is a lie, and decimals that a node does not tell are none', async (t) => {
  const state = {};
  const told = (text, { id, method, params }) => {
    const lie = method === 'eth_call' ? state[String(params[0].data).slice(0, 10)] : state[method];
    return lie ? JSON.stringify({ jsonrpc: '2.0', id, ...lie }) : text;
  };
  const site = await behind(t, { tamper: (text, body) => told(text, JSON.parse(body)) });
  const [from] = await call(site.node, 'eth_accounts');
  // Answers every call with 2, also those for decimals and a balance.
  const hash = await call(site.node, 'eth_sendTransaction', { from, data: '0x600a80600b6000396000f3600260005260206000f3', gas: '0x5b8d80' });
  const { contractAddress } = await call(site.node, 'eth_getTransactionReceipt', hash);
  const code = await call(site.node, 'eth_getCode', contractAddress, 'latest');
  const [decimals, balanceOf, word] = ['0x313ce567', '0x70a08231', (value) => ({ result: `0x${value.toString(16).padStart(64, '0')}` })];
  await onPage(browser, site, async (page) => {
    const proven = async (name, button, label, words) => {
      await openForm(page, name);
      await page.getByLabel(label).fill(contractAddress);
      await page.getByRole('button', { name: button }).click();
      await page.waitForFunction((text) => document.querySelector('#explorer .side.good')?.textContent.includes(text), words);
    };
    const token = () => proven('Token', 'Prove the balance', 'Address of the token', '0.02');
    state[decimals] = { error: { code: -32000, message: 'busy' } };
    await token();
    assert.equal(await page.locator('#explorer .bad').count(), 0);
    Object.assign(state, { [decimals]: word(3), [balanceOf]: word(20) });
    await token();
    await page.waitForSelector('#explorer .side.bad');
    assert.match(await page.textContent('#explorer .side.bad'), /0\.02, as 20 with other decimals/);
    state.eth_getCode = { result: `${code.slice(0, -2)}00` };
    await proven('Account', 'Prove the account', 'Address of an account', 'a contract of 10 bytes');
    assert.match(await page.textContent('#explorer .side.bad'), /other code/);
  });
});
