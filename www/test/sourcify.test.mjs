// Functions of contracts from a Sourcify server: only from one that the operator names, and marked as not proven.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { answering } from './lib/contracts.mjs';
import { find } from './lib/page.mjs';
import { call, EMBEDDED, serveFolder, startProgram } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** A Sourcify server whose answers `answer(response)` writes, and what it was asked. */
async function sourcify(t, answer) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.setHeader('access-control-allow-origin', '*');
    answer(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }));
  return { asked, url: `http://127.0.0.1:${server.address().port}/server` };
}

/** A development chain with a contract, and its page, which may ask at the address. */
async function withContract(t, address) {
  const program = await startProgram('dev', ...(EMBEDDED && address ? ['--sourcify', address] : []));
  t.after(program.stop);
  const [from] = await call(program.url, 'eth_accounts');
  const hash = await call(program.url, 'eth_sendTransaction', { from, data: answering('hello'), gas: '0x5b8d80' });
  const { contractAddress } = await call(program.url, 'eth_getTransactionReceipt', hash);
  const site = EMBEDDED ? { url: program.url, stop: async () => {} } : await serveFolder(program.url, undefined, undefined, address);
  t.after(site.stop);
  const tab = await openPage(browser, `${site.url}/`);
  t.after(tab.close);
  await ready(tab.page);
  await find(tab.page, contractAddress, 'Contract');
  return { ...tab, contractAddress };
}

const button = (page) => page.getByRole('button', { name: /Ask .* for the functions/ });

const NAMES = ['<img src=x onerror=alert(1)>', '\u202egnp', 'x'.repeat(500)];
const functionOf = (name, inputs = []) => ({ type: 'function', name, stateMutability: 'view', inputs, outputs: [] });

test('no other server is asked unless the operator names one', async (t) => {
  const { page, complaints } = await withContract(t, undefined);
  await page.waitForSelector('#page [data-token]', { state: 'attached' });
  assert.equal(await button(page).count(), 0);
  assert.ok(await page.getByLabel('ABI', { exact: true }).isVisible());
  assert.deepEqual(complaints, []);
});

test('functions from the operator’s Sourcify server are shown on request, not proven, and hostile names stay text', async (t) => {
  const abi = [functionOf('greet'), ...NAMES.map((name) => functionOf(name)), functionOf('of', [{ name: NAMES[0], type: 'address' }, { name: NAMES[1], type: 'uint256' }])];
  const { asked, url } = await sourcify(t, (response) => response.end(JSON.stringify({ abi, match: 'exact_match' })));
  const { page, contractAddress } = await withContract(t, url);
  await button(page).waitFor();
  assert.deepEqual(asked, [], 'nothing is asked before a visitor wants it');
  await button(page).click();
  await page.waitForSelector('#page .function');
  assert.deepEqual(asked, [`/server/v2/contract/33/${contractAddress}?fields=abi`]);
  assert.match(await page.textContent('#page .functions .whose'), new RegExp(`^names not proven The names are the word of ${new URL(url).host}\\. What the functions answer is proven`));
  assert.deepEqual(await page.locator('#page .function code').allTextContents(), ['greet()', 'of(address,uint256)'], 'names that are none of Solidity’s are left out');
  assert.ok((await page.textContent('#page .functions')).includes('\\u{202e}gnp'), 'unseen characters are written out');
  assert.equal(await page.locator('#page .functions img').count(), 0);
  await page.getByRole('button', { name: 'Ask and prove' }).first().click();
  await page.waitForFunction(() => document.querySelector('#page .function .side.good')?.textContent.includes('hello'));
  assert.equal(await page.evaluate(() => globalThis.violations.length), 0);
});

test('an ABI of 5 MB, nonsense, and a server without the contract are told, and the ABI can still be pasted', async (t) => {
  let answer;
  const { url } = await sourcify(t, (response) => answer(response));
  const { page } = await withContract(t, url);
  await button(page).waitFor();
  const huge = JSON.stringify({ abi: Array.from({ length: 60_000 }, (_, at) => functionOf(`function${at}`)) });
  assert.ok(huge.length > 5_000_000);
  for (const [each, words] of [
    [(response) => response.end(huge), /more than 500000 characters, which are not read/],
    [(response) => response.end('<html>'), /an ABI is JSON/],
    [(response) => response.end('{"abi":{}}'), /no list of functions/],
    [(response) => response.writeHead(404).end('{}'), /nobody has published this contract there/],
    [(response) => response.writeHead(302, { location: '/elsewhere' }).end(), /pages of this server are not allowed/],
    [(response) => response.writeHead(500).end(), /HTTP status 500/],
  ]) {
    answer = each;
    await button(page).click();
    await page.waitForFunction((source) => new RegExp(source).test(document.querySelector('#page .functions .note.warn')?.textContent ?? ''), words.source);
    assert.equal(await page.locator('#page .function').count(), 0);
  }
  await page.getByLabel('ABI', { exact: true }).fill(JSON.stringify([functionOf('greet')]));
  await page.getByRole('button', { name: 'Show the functions' }).click();
  await page.waitForSelector('#page .function');
  assert.match(await page.textContent('#page .functions .whose'), /word of whoever wrote this ABI/);
});
