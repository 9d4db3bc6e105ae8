// The first screen, the search, and the pages with addresses of their own.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { onPage } from './lib/page.mjs';
import { openSources } from './lib/source.mjs';
import { call, PROGRAM, serveFolder, startProgram, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Looks for something in the search field, and waits for its page. */
async function find(page, text, heading) {
  await page.getByLabel('Address, transaction or block').fill(text);
  await page.getByRole('button', { name: 'Prove it' }).click();
  await page.waitForFunction((wanted) => document.querySelector('#page h2')?.textContent === wanted, heading);
}

/** Opens each step of the ladder, and returns their titles; all must fit. */
async function climb(page) {
  const rungs = page.locator('#page .rung');
  assert.equal(await rungs.count(), 5);
  assert.equal(await page.locator('#page .rung.bad').count(), 0);
  for (let at = 0; at < 5; at += 1) {
    await rungs.nth(at).click();
    assert.ok((await page.textContent('#page .ladder-panel')).length > 40, `step ${at + 1} opens`);
  }
  return rungs.allTextContents();
}

/** A development chain with a payment, and its page. */
async function withPayment(t, tamper) {
  const program = await startProgram('dev');
  t.after(program.stop);
  const [from, to] = await call(program.url, 'eth_accounts');
  const hash = await call(program.url, 'eth_sendTransaction', { from, to, value: '0xde0b6b3a7640000', gas: '0x5208', gasPrice: '0x3b9aca00' });
  await call(program.url, 'evm_mine');
  const site = await serveFolder(program.url, tamper);
  t.after(site.stop);
  return { site: { ...site, node: program.url }, from, to, hash };
}

test('the first screen: one press, a node lies, a wallet shows the lie, and the page names the liar', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.getByRole('button', { name: 'Make a node lie' }).click();
    await page.waitForFunction(() => document.querySelector('#shown')?.textContent === '1,010,001.6 RBTC');
    assert.equal(await page.textContent('#noticed'), '10,001.6 RBTC');
    assert.match(await page.textContent('#demo .side.lie'), /wrong/);
    const grounds = await page.evaluate(() => ['.side.lie', '.side.lie .badge'].map((part) => getComputedStyle(document.querySelector(part)).backgroundColor));
    assert.notEqual(grounds[0], grounds[1], 'the badge stands out from the card');
    assert.match(await page.textContent('#demo .side.good'), /liar caught.*Node A was caught/s);
    await page.getByRole('button', { name: 'Make the node honest again' }).click();
    await page.waitForFunction(() => document.querySelector('#shown')?.textContent === '10,001.6 RBTC');
    assert.equal(await page.locator('#demo .side.lie').count(), 0);
    assert.equal(await page.textContent('#honest'), '1 of 1', 'the server is not accused of the lie');
  });
});

test('the status line says the newest block, its age, honest nodes, what the chain rests on, and what a forgery costs', async (t) => {
  const { site } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#age');
    assert.match(await page.textContent('#status .strip-line'), /development chain#2 newest block, (just now|\d+ s ago).*1 of 1 node honest.*checked from block 0, which is trusted.*forging it costs next to nothing/);
  });
  const sources = await openSources();
  t.after(sources.close);
  const { forgery } = await sources.load('views/status.ts');
  // The work of a header whose bits say 0x1d00ffff is 2^32 tries and a little.
  const header = `0x${'00'.repeat(72)}ffff001d${'00'.repeat(4)}`;
  assert.equal(forgery(`0x${(3n * (1n << 32n) + (1n << 20n)).toString(16)}`, header), 'the work of 3.0 Bitcoin blocks');
  assert.equal(forgery(null, header), undefined);
  assert.equal(forgery('0x1', '0x12'), undefined);
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
    assert.match(await page.textContent('#search .note.input'), /^your input An address has 40 hexadecimal digits after 0x, a transaction 64; here are 16/);
  });
});

test('block, transaction and account have pages with five steps, links, and proofs as files that `rootlight verify` takes', async (t) => {
  const { site, from, to, hash } = await withPayment(t);
  const folder = await mkdtemp(join(tmpdir(), 'rootlight-proofs-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await onPage(browser, site, async (page) => {
    const verified = async (subject) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Proof as file' }).click()]);
      const file = join(folder, download.suggestedFilename());
      await download.saveAs(file);
      const said = await page.textContent('#page section[aria-label="What the node said"] code');
      assert.equal(said, `rootlight verify ${subject} ${download.suggestedFilename()} --network regtest`);
      return JSON.parse(execFileSync(PROGRAM, ['verify', subject, file, '--network', 'regtest', '--json'], { encoding: 'utf8' }));
    };
    await find(page, '1', 'Block 1');
    const block = await climb(page);
    assert.match(block[0], /The node made a header with practice work/);
    assert.equal((await verified('header')).facts.number, '1');
    assert.equal(await page.textContent('#same'), 'The same as what is proven here.');
    await page.locator(`#page a[href="#/tx/${hash}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h2')?.textContent === 'Transaction');
    assert.match(await page.textContent('#page .facts'), /Amount1 RBTC.*Fee0\.000021 RBTC.*Resultsucceeded · 0 logs.*1 of 2/);
    assert.match((await climb(page))[4], /This receipt/);
    assert.equal((await verified('receipt')).verified, true);
    await page.reload();
    await page.waitForFunction(() => document.querySelector('#page h2')?.textContent === 'Transaction', undefined, { timeout: 30_000 });
    await page.locator(`#page a[href="#/address/${to}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h2')?.textContent === 'Account');
    assert.match((await climb(page))[4], /This account/);
    const account = await verified('account');
    assert.equal(account.facts.balance, String(BigInt(await call(site.node, 'eth_getBalance', to, 'latest'))));
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('#page h2')?.textContent === 'Transaction');
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Blocks' }).click();
    await page.waitForFunction(() => Math.abs(document.getElementById('blocks').getBoundingClientRect().top - 80) < 2);
    await find(page, from, 'Account');
  });
});

test('“as curl” is a command that asks the node the same', async (t) => {
  const { site, hash } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await find(page, hash, 'Transaction');
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    const { execFile } = await import('node:child_process');
    const answer = await new Promise((resolve, reject) => execFile('bash', ['-c', command], (error, stdout) => (error ? reject(error) : resolve(stdout))));
    assert.equal(JSON.parse(answer).result.transactionHash, hash);
  });
});

test('a node that lies about a transaction or a block is caught on its page', async (t) => {
  const own = (method, change) => (text, body) => {
    const asked = JSON.parse(body);
    if (Array.isArray(asked) || asked.method !== method) return text;
    const answer = JSON.parse(text);
    return answer.result ? JSON.stringify({ ...answer, result: { ...answer.result, ...change } }) : text;
  };
  const { site, hash } = await withPayment(t, own('eth_getTransactionReceipt', { status: '0x0' }));
  await onPage(browser, site, async (page) => {
    await find(page, hash, 'Transaction');
    assert.match(await page.textContent('#page .facts'), /succeeded/);
    assert.match(await page.textContent('#page .note.bad'), /^caught lying The two differ/);
    await page.waitForFunction(() => document.querySelector('#honest')?.textContent === '0 of 1');
  });
});

test('a token has a page, a contract its functions from an ABI, and bad ABIs are the visitor’s input', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.locator('#explorer .tab', { hasText: 'Token' }).click();
    const address = await page.getByLabel('Address of the token').inputValue();
    await find(page, address, 'Contract');
    const abi = [
      { type: 'function', name: 'balanceOf', stateMutability: 'view', inputs: [{ name: '<b>who</b>', type: 'address' }], outputs: [{ type: 'uint256' }] },
      { type: 'function', name: 'totalSupply', stateMutability: 'view', inputs: [], outputs: [{ type: 'uint256' }] },
    ];
    const show = async (text) => {
      await page.getByLabel('ABI').evaluate((field, value) => { field.value = value; }, text);
      await page.getByRole('button', { name: 'Show the functions' }).click();
    };
    for (const [wrong, words] of [['hello', /An ABI is JSON/], ['{}', /no list of functions/], ['[]', /names no function/], ['['.repeat(5_000_000), /5000000 characters, at most 500000/]]) {
      await show(wrong);
      await page.waitForFunction((source) => new RegExp(source).test(document.querySelector('#page .functions .note.input')?.textContent ?? ''), words.source);
    }
    await show(JSON.stringify(abi));
    assert.equal(await page.locator('#page .function').count(), 2);
    assert.equal(await page.locator('#page .function b').count(), 0, 'names stay text');
    await page.locator('#page .function').nth(1).getByRole('button').click();
    await page.waitForFunction(() => document.querySelector('#page .function .side.good')?.textContent.includes('as an amount 1,000,000'));
    await page.locator('#page .function').nth(0).getByRole('button').click();
    await page.waitForSelector('#page .function .note.input');
    await page.locator(`#page a[href="#/token/${address}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h2')?.textContent === 'Token');
    await page.waitForFunction(() => document.querySelector('#page .side.good')?.textContent.includes('DEMO'));
    await page.evaluate((id) => { location.hash = `#/logs/${id}`; }, address);
    await page.waitForFunction(() => document.querySelectorAll('#page .log li').length === 3);
  });
});

test('addresses that lead nowhere say why, in words of their verdict', async (t) => {
  const { site } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    const says = async (hash, kind, words) => {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.waitForFunction(([kind, source]) => new RegExp(source).test(document.querySelector(`#page .note.${kind}`)?.textContent ?? ''), [kind, words.source]);
    };
    await says(`#/tx/0x${'77'.repeat(32)}`, 'warn', /^cannot be proven/);
    await says('#/block/99', 'input', /Block 99 does not exist yet: the newest proven one is 2/);
    await says('#/address/<img src=x>', 'input', /An address is 0x/);
    await says('#/nothing', 'input', /not #\/nothing/);
    await says('#/__proto__', 'input', /addresses such as/);
    assert.equal(await page.locator('#page img').count(), 0);
  });
});

test('a strip is one Tab stop, and arrow keys move within it', async (t) => {
  const { site, hash } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    for (const strip of ['.chain', '.strip', '#explorer .tabs']) {
      await page.locator(`${strip} button`).first().waitFor();
      assert.equal(await page.locator(`${strip} >> nth=0 >> button:not([tabindex="-1"])`).count(), 1, strip);
    }
    await find(page, hash, 'Transaction');
    await page.locator('.rung').first().focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('.rung').nth(1).getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('End');
    assert.match(await page.evaluate(() => document.activeElement.textContent), /This receipt/);
  });
});
