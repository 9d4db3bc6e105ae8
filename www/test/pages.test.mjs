// The pages of blocks, transactions and accounts, which have addresses of their own.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { climb, find, onPage, SIZES, withPayment } from './lib/page.mjs';
import { call, PROGRAM } from './lib/site.mjs';
import { openSources } from './lib/source.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

test('block, transaction and account have pages with five steps, links, and proofs as files that `rootlight verify` takes', async (t) => {
  const { site, from, to, hash } = await withPayment(t);
  const folder = await mkdtemp(join(tmpdir(), 'rootlight-proofs-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await onPage(browser, site, async (page) => {
    const verified = async (subject) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: subject === 'header' ? 'Header as file' : 'Proof as file' }).click()]);
      const file = join(folder, download.suggestedFilename());
      await download.saveAs(file);
      const said = await page.textContent('#page section[aria-label="What the node said"] code');
      assert.equal(said, `rootlight verify ${subject} ${download.suggestedFilename()} --network regtest`);
      return JSON.parse(execFileSync(PROGRAM, ['verify', subject, file, '--network', 'regtest', '--json'], { encoding: 'utf8' }));
    };
    await find(page, '1', 'Block 1');
    const block = await climb(page);
    assert.match(block[0], /The node worked on a header by itself/);
    assert.equal(await page.textContent('#page .why h2'), 'Why you can believe this');
    await page.evaluate(() => { location.hash = '#/block/0'; });
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Block 0');
    assert.equal(await page.textContent('#page .why h2'), 'Trusted, not proven');
    assert.match(await page.textContent('#page .why p'), /^3 steps/);
    await find(page, '1', 'Block 1');
    assert.equal((await verified('header')).facts.number, '1');
    assert.equal(await page.textContent('#same'), 'The same as what is proven here.');
    await page.locator(`#page a[href="#/tx/${hash}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Transaction');
    assert.match(await page.textContent('#page .facts'), /Amount1 RBTC.*Fee0\.000021 RBTC.*Resultsucceeded · 0 logs.*#1, transaction 1 of 2/);
    const steps = await climb(page);
    assert.match(steps.slice(2).join(), /names this transaction and its receipt.*\d+ trie nodes?.*This receipt/);
    await page.locator('#page .rung').nth(2).click();
    const own = await call(site.node, 'eth_getRawTransactionByHash', hash);
    const { transactionsRoot, receiptsRoot } = await call(site.node, 'eth_getBlockByNumber', '0x1', false);
    assert.deepEqual(await page.locator('#page .ladder-panel .mono').allTextContents(), [transactionsRoot, own, hash, receiptsRoot]);
    await page.locator('#page .rung').nth(3).click();
    assert.match(await page.textContent('#page .ladder-panel'), /names, or stands whole in that one.*yellow.*Trie node 2 · stands whole in the one above · the hash of the value and its length, marked/, 'a receipt is too long to stand in the trie');
    assert.equal((await verified('receipt')).verified, true);
    await page.reload();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Transaction', undefined, { timeout: 30_000 });
    await page.locator(`#page a[href="#/address/${to}"]`).click();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Account');
    assert.match((await climb(page))[4], /This account/);
    await page.locator('#page .rung').nth(3).click();
    assert.match(await page.textContent('#page .ladder-panel'), /^4\. \d+ trie nodes.*Trie node 1 · hash/);
    assert.doesNotMatch(await page.textContent('#page .ladder-panel'), /(?<![Tt]rie )\bnodes?\b/i, 'a node without more words is the server');
    const account = await verified('account');
    assert.equal(account.facts.balance, String(BigInt(await call(site.node, 'eth_getBalance', to, 'latest'))));
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('#page h1')?.textContent === 'Transaction');
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
    await page.waitForFunction(() => document.querySelector('#honest')?.textContent === 'not honest');
  });
});

test('addresses that lead nowhere say why, in words of their verdict', async (t) => {
  const { site } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    const says = async (hash, kind, words) => {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.waitForFunction(([kind, source]) => new RegExp(source).test(document.querySelector(`#page .note.${kind}`)?.textContent ?? ''), [kind, words.source]);
    };
    await says(`#/tx/0x${'77'.repeat(32)}`, 'warn', /^cannot be proven ?The node shows no transaction.*not be mined yet.*another chain.*another node may/);
    assert.equal(await page.textContent('#given'), `Looked for: the transaction 0x${'77'.repeat(32)}`);
    await says('#/block/99', 'input', /Block 99 is above the newest proven one, 2: it is not mined yet, or the node is behind/);
    assert.equal(await page.locator('#page .note a').getAttribute('href'), '#/block/2');
    assert.equal(await page.getByLabel('Address, transaction or block').inputValue(), '99');
    await says('#/address/0x123', 'input', /not 5 characters; 64 digits are a transaction or a block, a plain number is a block/);
    await says(`#/address/0x${'1'.repeat(3_000)}`, 'input', /not 3002 characters/);
    assert.equal((await page.textContent('#given')).length, 'Looked for: the address '.length + 100);
    await says('#/address/<img src=x>', 'input', /An address is 0x/);
    await says('#/nothing', 'input', /not #\/nothing/);
    await says('#/__proto__', 'input', /addresses such as/);
    assert.equal(await page.locator('#page img').count(), 0);
  });
});

test('the pages of a transaction, an account and a token say what the chain rests on, and lead to the block', async (t) => {
  const { site, hash, from } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    for (const [text, heading] of [[hash, 'Transaction'], [from, 'Account']]) {
      await find(page, text, heading);
      assert.match(await page.textContent('#rests-on'), /^Everything since the first block was checked here; that block is trusted as the node shows it/);
      await page.locator('#rests-on a').click();
      await page.waitForFunction(() => /^Block \d+$/.test(document.querySelector('#page h1')?.textContent));
      await page.locator('#page .evidence').waitFor();
    }
  });
});

test('the last card of a page has its border, and the page ends with one line', async (t) => {
  const { site, hash } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    await find(page, hash, 'Transaction');
    const widths = await page.evaluate(() => ['#page article > section:last-child', '#page', 'footer'].map((each) => {
      const { borderTopWidth, borderBottomWidth } = getComputedStyle(document.querySelector(each));
      return [borderTopWidth, borderBottomWidth];
    }));
    assert.deepEqual(widths, [['1px', '1px'], ['0px', '0px'], ['1px', '0px']]);
  });
});

test('on a phone the numbers of the steps are round, also beside two lines of text', async (t) => {
  const { site, hash } = await withPayment(t);
  await onPage(browser, site, async (page) => {
    await find(page, hash, 'Transaction');
    const shapes = await page.evaluate(() => [...document.querySelectorAll('#page .rung .step')].map(({ offsetWidth, offsetHeight }) => offsetWidth === offsetHeight));
    assert.deepEqual(shapes, [true, true, true, true, true]);
    assert.ok((await page.locator('#page .button.quiet').first().boundingBox()).height >= 40, 'a finger finds the button');
    await find(page, '1', 'Block 1');
    assert.ok((await page.getByRole('link', { name: 'the next one' }).boundingBox()).height >= 40);
    await page.getByText('Byte by byte').click();
    await page.waitForSelector('#page .explain', { state: 'attached' });
    assert.equal(await page.locator('#page .explain').evaluate(({ offsetHeight }) => offsetHeight), 0, 'nothing is kept free at the end');
  }, { viewport: SIZES.phone });
});

test('the bytes of a transaction are those that have its hash, or none', async (t) => {
  const sources = await openSources();
  t.after(sources.close);
  const { encoded } = await sources.load('proof/transaction.ts');
  const { site, hash } = await withPayment(t);
  const transaction = await call(site.node, 'eth_getTransactionByHash', hash);
  assert.equal(encoded(transaction, hash), await call(site.node, 'eth_getRawTransactionByHash', hash));
  assert.equal(encoded({ ...transaction, nonce: '0x1' }, hash), undefined);
  // A REMASC transaction, which pays the miners, encodes its numbers in another form.
  const { transactions } = await call(site.node, 'eth_getBlockByNumber', '0x1', true);
  const pay = transactions.at(-1);
  assert.equal(encoded(pay, pay.hash), undefined);
});
