// Texts that anybody can write into a chain: they stay text.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { answering } from './lib/contracts.mjs';
import { NAMES, safe } from './lib/hostile.mjs';
import { onPage, openForm } from './lib/page.mjs';
import { call, serveFolder, startProgram, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

test('a token with a hostile name is shown as text', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const [from] = await call(site.node, 'eth_accounts');
  const tokens = [];
  for (const name of NAMES) {
    const hash = await call(site.node, 'eth_sendTransaction', { from, data: answering(name), gas: '0x5b8d80' });
    tokens.push((await call(site.node, 'eth_getTransactionReceipt', hash)).contractAddress);
  }
  await onPage(browser, site, async (page) => {
    await openForm(page, 'Token');
    for (const [at, name] of NAMES.entries()) {
      await page.getByLabel('Address of the token').fill(tokens[at]);
      await page.getByLabel('Address of the holder').fill(from);
      await page.getByRole('button', { name: 'Prove the balance' }).click();
      const shown = safe(name.slice(0, 200));
      await page.waitForFunction((text) => [...document.querySelectorAll('#explorer .side.good dd')].some((dd) => dd.textContent === text), shown);
      assert.equal(await page.locator('#explorer img, #explorer script, #explorer svg, #explorer iframe').count(), 0, shown);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${shown} does not widen the page`);
    }
    await openForm(page, 'Contract');
    await page.getByLabel('Address of the contract').fill(tokens[0]);
    await page.getByLabel('Function').fill('name()');
    await page.getByRole('button', { name: 'Call and prove' }).click();
    await page.waitForFunction((text) => document.querySelector('#explorer .side.good dd')?.textContent === text, NAMES[0]);
  });
});

test('an error text of a node is shown as text', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  // Reverts with Error(string) and a hostile reason.
  const reason = '<img src=x onerror=alert(1)>';
  const bytes = Buffer.from(reason).toString('hex');
  const data = `08c379a0${'20'.padStart(64, '0')}${reason.length.toString(16).padStart(64, '0')}${bytes.padEnd(64, '0')}`;
  const length = (data.length / 2).toString(16).padStart(4, '0');
  const code = `61${length}80600d6000396000fdfe${data}`;
  const deploy = `0x61${(code.length / 2).toString(16).padStart(4, '0')}80600d6000396000f3fe${code}`;
  const [from] = await call(site.node, 'eth_accounts');
  const hash = await call(site.node, 'eth_sendTransaction', { from, data: deploy, gas: '0x5b8d80' });
  const { contractAddress } = await call(site.node, 'eth_getTransactionReceipt', hash);
  await onPage(browser, site, async (page) => {
    await openForm(page, 'Contract');
    await page.getByLabel('Address of the contract').fill(contractAddress);
    await page.getByLabel('Function').fill('anything()');
    await page.getByRole('button', { name: 'Call and prove' }).click();
    await page.waitForSelector('#explorer .note[data-verdict=reverted]');
    assert.match(await page.textContent('#explorer .note'), /reverted/);
    assert.doesNotMatch(await page.textContent('#explorer .note'), /no such function/, 'it gives a reason');
    assert.ok((await page.textContent('#explorer .note')).includes(reason), 'the reason, as text');
    assert.equal(await page.locator('#explorer img').count(), 0);
  });
});

test('nonsense of a node does not hide the proven answer', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  const [account] = await call(program.url, 'eth_accounts');
  const answers = { eth_getBalance: '<b>lots</b>', eth_getTransactionCount: { toString: 1 }, eth_getCode: `0x${'f'.repeat(300_001)}`, eth_getLogs: [null, { data: 7 }] };
  const one = (call) => ({ jsonrpc: '2.0', id: call.id, result: answers[call.method] });
  const site = await serveFolder(program.url, (text, body) => {
    const asked = JSON.parse(body);
    return !Array.isArray(asked) && asked.method in answers ? JSON.stringify(one(asked)) : text;
  });
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#explorer .side.good');
    const values = (side) => page.locator(`#explorer .side.${side} .value`).allTextContents();
    assert.deepEqual(await values('bad'), ['nothing that makes sense', 'nothing that makes sense', 'nothing that makes sense']);
    const [balance, nonce, kind] = await values('good');
    assert.equal(BigInt(balance.replaceAll(/,| RBTC/g, '')) * 10n ** 18n, BigInt(await call(program.url, 'eth_getBalance', account, 'latest')));
    assert.deepEqual([nonce, kind], ['0', 'an ordinary account']);
    await openForm(page, 'Logs');
    await page.getByRole('button', { name: 'Prove the logs' }).click();
    await page.waitForFunction(() => document.querySelector('#explorer')?.textContent.includes('There are no logs in block'));
    assert.match(await page.textContent('#explorer'), /The node names 2 more, which do not exist/);
  });
});

/** The answer of a contract whose words are these numbers. */
const numbers = (...words) => words.map((word) => word.toString(16).padStart(64, '0')).join('');

test('enormous numbers of a contract and of a visitor are shown or refused, and widen nothing', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  const [from] = await call(site.node, 'eth_accounts');
  // Answers each call, also those for decimals and name, with the largest number; and logs a transfer of it.
  const most = 2n ** 256n - 1n;
  const transfer = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
  const runtime = `7f${numbers(most)}600052${'33'}${'33'}7f${transfer}60206000a360206000f3`;
  const data = `0x60${(runtime.length / 2).toString(16)}80600b6000396000f3${runtime}`;
  const { contractAddress } = await call(site.node, 'eth_getTransactionReceipt', await call(site.node, 'eth_sendTransaction', { from, data, gas: '0x5b8d80' }));
  await call(site.node, 'eth_sendTransaction', { from, to: contractAddress, gas: '0x5b8d80' });
  await onPage(browser, site, async (page) => {
    const shows = async (hash, heading, text) => {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.waitForFunction(([heading, text]) => document.querySelector('#page h1')?.textContent === heading && document.querySelector('#page').textContent.includes(text), [heading, text]);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, hash);
    };
    await shows(`#/token/${contractAddress}/${from}`, 'Token', most.toLocaleString('en-US'));
    await shows(`#/logs/${contractAddress}`, 'Logs', 'Transfer of 115,792,089,237,316,195,423,570,985,008,687,907,853,269,984,665,640,564,039,457,584,007,913,129,639,935 units');
    await shows(`#/block/${'9'.repeat(15)}`, 'No proven answer', 'is above the newest proven one');
    await shows(`#/block/${'9'.repeat(400)}`, 'No proven answer', 'A block is a number or a hash');
    await shows(`#/logs/all/${'9'.repeat(400)}`, 'No proven answer', 'write how many blocks'.replace('w', 'W'));
    await shows(`#/tx/0x${'f'.repeat(2_000)}`, 'No proven answer', 'A transaction is 0x and 64 hexadecimal digits');
  }, { viewport: { width: 360, height: 740 } });
});

test('what is looked for may be 2,000 characters, of any kind, and stays text', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    for (const text of [...NAMES, 'x'.repeat(2_000), `0x${'a'.repeat(2_000)}`, '\u2066\u202e0x12', '9'.repeat(2_000)]) {
      await page.getByLabel('Address, transaction or block').fill(text);
      await page.keyboard.press('Enter');
      await page.waitForSelector('#search .note.input');
      assert.equal(await page.locator('#search img, #search script, #search svg, #search iframe').count(), 0, text);
      await page.evaluate((to) => { location.hash = `#/${to}`; }, text);
      await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'There is no such page');
      assert.equal(await page.getByRole('link', { name: '← First page' }).count(), 1);
      assert.equal(await page.locator('#page img, #page script, #page svg, #page iframe').count(), 0, text);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, text.slice(0, 40));
      await page.evaluate(() => { document.querySelector('#search .note').remove(); });
    }
  }, { viewport: { width: 360, height: 740 } });
});

test('a node’s raw answer stays text, however long and whatever its characters', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  await call(program.url, 'evm_mine');
  const site = await serveFolder(program.url, (text, body) => {
    const asked = JSON.parse(body);
    if (Array.isArray(asked) || asked.method !== 'eth_getBlockByNumber') return text;
    const answer = JSON.parse(text);
    return JSON.stringify({ ...answer, result: { ...answer.result, timestamp: NAMES.join(' '), extra: NAMES.join(' ').repeat(30) } });
  });
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.evaluate(() => { location.hash = '#/block/1'; });
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Block 1');
    await page.getByText('Its raw JSON').click();
    const raw = await page.textContent('#page .raw');
    assert.ok(raw.includes('<img src=x onerror=alert(1)>') && raw.includes('\\u{202e}') && !raw.includes('\u202e'), raw.slice(0, 200));
    assert.ok(raw.length < 60_000, `${raw.length} characters`);
    assert.equal(await page.locator('#page img, #page script, #page svg, #page iframe').count(), 0);
    assert.match(await page.textContent('#page .note.bad'), /^caught lying/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
  }, { viewport: { width: 360, height: 740 } });
});
