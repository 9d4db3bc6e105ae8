// The pages of contracts, tokens and logs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { startBrowser } from './lib/browser.mjs';
import { answering } from './lib/contracts.mjs';
import { climb, find, onPage, openForm } from './lib/page.mjs';
import { call, serveFolder, startProgram } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** The token that the practice chain begins with. */
async function tokenOn(page) {
  await openForm(page, 'Token');
  return page.getByLabel('Address of the token').inputValue();
}

/** Follows an address of the page, and waits for its heading. */
async function visit(page, hash, heading) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction((wanted) => document.querySelector('#page h1')?.textContent === wanted, heading);
}

test('a contract’s functions come from an ABI, and bad ABIs are the visitor’s input', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await find(page, await tokenOn(page), 'Contract');
    const abi = [
      { type: 'function', name: 'balanceOf', stateMutability: 'view', inputs: [{ name: '<b>who</b>', type: 'address' }], outputs: [{ type: 'uint256' }] },
      { type: 'function', name: 'totalSupply', stateMutability: 'view', inputs: [], outputs: [{ type: 'uint256' }] },
    ];
    const show = async (text) => {
      await page.getByLabel('ABI', { exact: true }).evaluate((field, value) => { field.value = value; }, text);
      await page.getByRole('button', { name: 'Show the functions' }).click();
    };
    for (const [wrong, words] of [['hello', /An ABI is JSON/], ['{}', /no list of functions/], ['[]', /names no function/], ['['.repeat(5_000_000), /5000000 characters, at most 500000/]]) {
      await show(wrong);
      await page.waitForFunction((source) => new RegExp(source).test(document.querySelector('#page .functions .note.input')?.textContent ?? ''), words.source);
    }
    await show(JSON.stringify(abi));
    assert.equal(await page.locator('#page .function').count(), 2);
    const hidden = await page.getByLabel('ABI', { exact: true }).evaluate((field) => field.scrollWidth - field.clientWidth);
    assert.equal(hidden, 0, 'a long line of an ABI is wrapped');
    assert.equal(await page.locator('#page .function b').count(), 0, 'names stay text');
    await page.locator('#page .function').nth(1).getByRole('button').click();
    await page.waitForFunction(() => document.querySelector('#page .function .side.good')?.textContent.includes('as an amount 1,000,000'));
    await page.locator('#page .function').nth(0).getByRole('button').click();
    await page.waitForSelector('#page .function .note.input');
  });
});

test('a contract’s page shows its code with size and hash, and catches a node that shows another one', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  const [from] = await call(program.url, 'eth_accounts');
  const hash = await call(program.url, 'eth_sendTransaction', { from, data: answering('hello'), gas: '0x5b8d80' });
  const { contractAddress } = await call(program.url, 'eth_getTransactionReceipt', hash);
  const code = await call(program.url, 'eth_getCode', contractAddress, 'latest');
  const other = `${code.slice(0, -2)}77`;
  let lies = false;
  const site = await serveFolder(program.url, (text, body) => {
    const asked = JSON.parse(body);
    return lies && asked.method === 'eth_getCode' ? JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: other }) : text;
  });
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const read = async () => {
      await visit(page, `#/address/${contractAddress}`, 'Contract');
      assert.equal(await page.textContent('#code-size'), `${(code.length - 2) / 2} bytes`);
      assert.equal(await page.textContent('#code-hash'), `0x${Buffer.from(keccak_256(Buffer.from(code.slice(2), 'hex'))).toString('hex')}`);
      assert.equal(await page.getByText(code, { exact: true }).isVisible(), false, 'the bytes are folded');
      await page.getByText('Its bytes', { exact: true }).click();
      assert.ok(await page.getByText(code, { exact: true }).isVisible());
    };
    await read();
    assert.equal(await page.textContent('#same'), 'The same as what is proven here.');
    lies = true;
    await visit(page, '#/block/1', 'Block 1');
    await read();
    assert.match(await page.textContent('#page .note.bad'), /^caught lying The two differ/);
  });
});

test('a contract that refuses to be a token is told from a proof that is missing', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  const [from] = await call(program.url, 'eth_accounts');
  const hash = await call(program.url, 'eth_sendTransaction', { from, data: '0x6005600c60003960056000f360006000fd', gas: '0x5b8d80' });
  const { contractAddress } = await call(program.url, 'eth_getTransactionReceipt', hash);
  const site = await serveFolder(program.url);
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await visit(page, `#/token/${contractAddress}`, 'No proven answer');
    assert.match(await page.textContent('#page .note[data-verdict=reverted]'), /refused the call, and gives no reason. Perhaps it has no such function/);
    assert.match(await page.textContent('#page .note:last-child'), new RegExp(`^The contract ${contractAddress} does not answer as a token does`));
    assert.equal(await page.locator('#page .note:last-child a').getAttribute('href'), `#/address/${contractAddress}`);
  });
});

test('a token has a page with five steps to a balance, for the holder that its address names', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const token = await tokenOn(page);
    await find(page, token, 'Contract');
    await page.locator(`#page a[href="#/token/${token}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Token');
    assert.match(await page.textContent('#page .facts'), /^Holder0x7.*Balance250 DEMONameRootlight DemoSymbolDEMO/);
    const steps = await climb(page);
    assert.match(steps[3], /\d+ trie nodes/);
    assert.match(await page.textContent('#rests-on'), /^Everything since the first block was checked here.*page of block \d+$/);
    assert.match(await page.textContent('#page section[aria-label="What the node said"]'), /verify account token-.*The file proves the account of the token’s contract and the storage cells/);
    assert.match(await page.textContent('#page .ladder-panel'), /In words: 250$/);
    assert.equal(await page.textContent('#same'), 'The same as what is proven here.');
    const input = page.getByLabel('Address of another holder');
    assert.equal(await input.inputValue(), '');
    await input.fill('0x12');
    await input.press('Enter');
    await page.waitForSelector('#page .note.input');
    await input.fill(`0x${'12'.repeat(20)}`);
    await input.press('Enter');
    await page.waitForFunction(() => document.querySelector('#page .facts')?.textContent.includes('Balance0 DEMOName'));
    assert.ok(page.url().endsWith(`#/token/${token}/0x${'12'.repeat(20)}`));
    await climb(page);
  });
});

test('logs have a page with five steps, for the contract and the blocks that its address names', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const token = await tokenOn(page);
    await visit(page, `#/logs/${token}`, 'Logs');
    assert.equal(await page.locator('#page .log li').count(), 3);
    const steps = await climb(page);
    assert.match(steps[2], /The headers of blocks 0 to 5 \(block 0 is trusted\) name the receipts/);
    assert.match(await page.textContent('#page .found'), /^3 logs in blocks 0 to 5 \(block 0 is trusted\), the newest first/);
    assert.match(await page.textContent('#page'), /The page of each log’s transaction/);
    assert.ok(await page.evaluate(() => Boolean(document.querySelector('#page .found ~ .standing'))), 'the answer comes before what it rests on');
    assert.match(steps[3], /All receipts of 3 blocks/);
    await page.locator('#page .rung').nth(3).click();
    await page.waitForFunction(() => document.querySelector('#page .ladder-panel .path .badge.good')?.textContent === 'every step fits');
    await page.getByLabel('How many blocks').fill('1e9');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /how many blocks, from 1 to 2,000/.test(document.querySelector('#page .note.input')?.textContent ?? ''));
    await page.getByLabel('How many blocks').fill('1');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#page')?.textContent.includes('There are no logs in block 5. That is proven, too'));
    assert.doesNotMatch(await page.textContent('#page'), /each log’s transaction/, 'nothing is said of logs where there are none');
    assert.match((await climb(page)).join(), /All receipts that could hold one.*No log/s);
    await page.locator('#page .rung').nth(0).click();
    await visit(page, '#/logs', 'Logs');
    await page.waitForFunction(() => document.querySelectorAll('#page .log li').length === 3);
    await page.locator('#page .log a', { hasText: 'its transaction' }).first().click();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Transaction');
  });
});
