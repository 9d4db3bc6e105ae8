// Servers that lie or go away.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { onPage as on, practise } from './lib/page.mjs';
import { call, serveFolder, startProgram } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());
const onPage = (...args) => on(browser, ...args);

test('a server that lies about a balance is shown beside the proven one', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  await call(program.url, 'evm_mine');
  const [account] = await call(program.url, 'eth_accounts');
  const lie = (text, body) => (body.includes('"eth_getBalance"') ? text.replaceAll(/"result":"0x[0-9a-f]+"/g, '"result":"0xde0b6b3a7640000"') : text);
  const site = await serveFolder(program.url, lie);
  t.after(site.stop);
  await onPage(site, async (page) => {
    await page.waitForSelector('#explorer .side.bad');
    assert.equal(await page.locator('#explorer .side.bad .value').first().textContent(), '1 RBTC');
    const true_ = BigInt(await call(program.url, 'eth_getBalance', account, 'latest')) / 10n ** 18n;
    assert.match(await page.locator('#explorer .side.good .value').first().textContent(), new RegExp(`^${true_.toLocaleString('en-US')}`));
    assert.match(await page.locator('#explorer .note.bad').textContent(), /The two differ/);
  });
});

test('a server that makes up blocks gets no answer through, and the page says why', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  await call(program.url, 'hardhat_mine', '0x3');
  // Headers in bytes would give the lie away, so this server has none.
  const absent = (body) => [JSON.parse(body)].flat().map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } }));
  const site = await serveFolder(program.url, (text, body) => {
    if (/rootlight_getHeaders|rsk_getRaw/.test(body)) return JSON.stringify(body.startsWith('[') ? absent(body) : absent(body)[0]);
    return text.replaceAll(/"stateRoot":"0x..../g, '"stateRoot":"0xbeef');
  });
  t.after(site.stop);
  const { page, complaints, close } = await openPage(browser, `${site.url}/`);
  await page.waitForSelector('#source[data-trouble=unproven]', { timeout: 30_000 });
  assert.match(await page.textContent('#source'), /answers, and proves nothing of it/);
  assert.equal(await page.locator('.chain .block').count(), 0, 'nothing unproven is shown');
  assert.deepEqual(complaints, []);
  await practise(page);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'tab');
  t.after(close);
});

test('a server that goes away is shown as silent, and what was proven stays', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  await call(program.url, 'hardhat_mine', '0x2');
  const site = await serveFolder(program.url);
  t.after(site.stop);
  const { page, close } = await openPage(browser, `${site.url}/`);
  t.after(close);
  await page.waitForSelector('#status[data-node=answers]');
  await program.stop();
  await page.waitForSelector('#status[data-node=silent]', { timeout: 40_000 });
  assert.match(await page.textContent('#status'), /gives nothing new for now/);
  assert.equal(await page.textContent('#head'), '#2');
});

test('a main network server without headers is said to prove nothing, and the chain in the tab is one press away', async (t) => {
  const chain = (text, body) => {
    const one = ({ id, method }) => ({ jsonrpc: '2.0', id, ...(method === 'eth_chainId' ? { result: '0x1e' } : { error: { code: -32000, message: 'not here' } }) });
    const asked = JSON.parse(body);
    return JSON.stringify(Array.isArray(asked) ? asked.map(one) : one(asked));
  };
  const program = await startProgram('dev');
  t.after(program.stop);
  const site = await serveFolder(program.url, chain);
  t.after(site.stop);
  const { page, complaints, close } = await openPage(browser, `${site.url}/`);
  t.after(close);
  await page.waitForFunction(() => /proves nothing/.test(document.querySelector('#top')?.textContent ?? ''), undefined, { timeout: 30_000 });
  assert.equal(await page.locator('.chain .block').count(), 0);
  await practise(page);
  await ready(page);
  assert.equal(await page.getAttribute('html', 'data-ready'), 'tab');
  assert.deepEqual(complaints, []);
});
