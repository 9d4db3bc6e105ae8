// Blocks off the chain, and nodes that follow another branch or say that they do.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { logging } from './lib/contracts.mjs';
import { changing, onPage } from './lib/page.mjs';
import { call, serveFolder, startProgram } from './lib/site.mjs';
import { openSources } from './lib/source.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const shownHead = (page, number) => page.waitForFunction((text) => document.querySelector('#head')?.textContent === text, `#${number}`);

async function visit(page, hash, heading) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction((wanted) => document.querySelector('#page h1')?.textContent === wanted, heading);
}

/** Answers some calls by `replies`, a function of method and parameters, unless it returns undefined. */
const answering = (replies) => (text, body) => {
  const asked = JSON.parse(body);
  const answers = [JSON.parse(text)].flat();
  const changed = [asked].flat().map(({ id, method, params }) => {
    const result = replies(method, params);
    return result === undefined ? answers.find((each) => each.id === id) : { jsonrpc: '2.0', id, result };
  });
  return JSON.stringify(Array.isArray(asked) ? changed : changed[0]);
};

/** A chain that leaves block 2 out for another one. `leave` does so; the node still has the old block. `others` are four blocks of a third branch. */
async function forking(t, replies = () => undefined) {
  const program = await startProgram('dev');
  t.after(program.stop);
  const ask = (method, ...params) => call(program.url, method, ...params);
  const start = await ask('evm_snapshot');
  await ask('hardhat_mine', '0x4', '0x7');
  const others = await Promise.all([1, 2, 3, 4].map((number) => ask('eth_getBlockByNumber', `0x${number}`, true)));
  await ask('evm_revert', start);
  await ask('evm_mine');
  const snapshot = await ask('evm_snapshot');
  const [from, to] = await ask('eth_accounts');
  await ask('eth_sendTransaction', { from, to, value: '0x1', gas: '0x5208' });
  const old = await ask('eth_getBlockByNumber', '0x2', true);
  const short = { ...old, transactions: old.transactions.map(({ hash }) => hash) };
  const raw = await ask('rsk_getRawBlockHeaderByNumber', '0x2');
  const held = (method, [hash, full]) => (hash !== old.hash ? undefined : method === 'eth_getBlockByHash' ? (full ? old : short) : method === 'rsk_getRawBlockHeaderByHash' ? raw : undefined);
  const site = await serveFolder(program.url, answering((method, params) => replies(method, params, short) ?? held(method, params)));
  t.after(site.stop);
  const leave = async () => {
    await ask('evm_revert', snapshot);
    await ask('hardhat_mine', '0x3');
  };
  return { site, old, others, leave };
}

test('a block off the chain has no blocks on top, and the node that answers for its hash is not accused', async (t) => {
  const { site, old, leave } = await forking(t);
  await onPage(browser, site, async (page) => {
    await shownHead(page, 2);
    await visit(page, `#/block/${old.hash}`, 'Block 2');
    assert.equal(await page.locator('#aside').count(), 0);
    await leave();
    await shownHead(page, 4);
    for (const kind of ['block', 'tx']) {
      await visit(page, '#/block/1', 'Block 1');
      await visit(page, `#/${kind}/${old.hash}`, 'Block 2');
      assert.equal(await page.textContent('#page header .mono'), old.hash);
      assert.match(await page.textContent('#aside'), /not on the chain.*another block at this height/);
      assert.match(await page.textContent('#page header'), /not on the chain$/);
      assert.doesNotMatch(await page.textContent('#page'), /\d blocks? on top|Everything since/);
      assert.equal(await page.textContent('#same'), 'The same as what is proven here.');
    }
    await page.locator('#aside a').click();
    await page.waitForFunction((hash) => document.querySelector('#page header .mono')?.textContent !== hash, old.hash);
    assert.match(await page.textContent('#page header'), /2 blocks on top$/);
    assert.equal(await page.textContent('#honest'), 'no lie caught so far');
  });
});

test('a node that follows another branch is excused on the pages of blocks and of logs', async (t) => {
  const state = { aside: false };
  const { site, others, leave } = await forking(t, (method, params) => {
    if (!state.aside) return undefined;
    const found = /^eth_getBlockBy/.test(method) ? others.find(({ number, hash }) => params[0] === (method === 'eth_getBlockByHash' ? hash : number)) : undefined;
    if (found) return params[1] ? found : { ...found, transactions: found.transactions.map(({ hash }) => hash) };
    return method === 'eth_getLogs' ? [{ data: '0x' }] : undefined;
  });
  await onPage(browser, site, async (page) => {
    await shownHead(page, 2);
    await leave();
    await shownHead(page, 4);
    state.aside = true;
    await visit(page, '#/block/2', 'Block 2');
    assert.match(await page.textContent('#page .note.warn'), /names another block 2 .* and speaks about that one\. The two cannot be compared/);
    await visit(page, '#/logs', 'Logs');
    assert.match(await page.textContent('#page .note.warn'), /names another block 4 .* and speaks about that one\. The two cannot be compared/);
    assert.equal(await page.locator('#page .bad').count(), 0);
    assert.equal(await page.textContent('#honest'), 'no lie caught so far');
  });
});

test('a node that makes up the hash of another block is held to what it says', async (t) => {
  const made = `0x${'ab'.repeat(32)}`;
  const { site } = await forking(t, (method, params, old) => {
    if (method === 'eth_getBlockByNumber' && params[0] === '0x2') return { ...old, hash: made };
    return method === 'eth_getBalance' ? '0xde0b6b3a7640000' : undefined;
  });
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#explorer .side.bad');
    await page.waitForFunction(() => document.querySelector('#honest')?.textContent === 'not honest');
    await visit(page, '#/block/2', 'Block 2');
    assert.match(await page.textContent('#page .note.bad'), /^caught lying The two differ/);
  });
});

test('another hash excuses a node only if a block of that height is proven', async (t) => {
  const sources = await openSources();
  t.after(sources.close);
  const { Session } = await sources.load('chain/session.ts');
  const block = { number: '0x7', hash: `0x${'ab'.repeat(32)}` };
  const [hash, number] = [`0x${'cd'.repeat(32)}`, '0x7'];
  const branch = (claimed, proven, lies = 0) => {
    const session = new Session({ exchange: async ([{ id }]) => [{ jsonrpc: '2.0', id, result: claimed }] });
    let asked = false;
    session.provider = { requestWithLevel: async ({ method }) => {
      if (method === 'rootlight_upstreams') return { result: [{ lies: asked ? lies : 0 }] };
      asked = true;
      return { result: proven instanceof Error ? await Promise.reject(proven) : proven };
    } };
    return session.branchAt(block);
  };
  assert.equal(await branch({ hash }, { hash, number }), 'other');
  assert.equal(await branch({ hash }, null), 'same', 'a block that the node does not have');
  assert.equal(await branch({ hash }, { hash, number: '0x6' }), 'same', 'of another height');
  assert.equal(await branch({ hash: hash.toUpperCase().replace('0X', '0x') }, { hash: block.hash, number }), 'same', 'the same block');
  assert.equal(await branch({ hash }, new Error('no header')), 'unproven');
  assert.equal(await branch({ hash }, new Error('the header has another hash'), 1), 'same', 'caught on the way');
  assert.equal(await branch({ hash: block.hash }, null), 'same');
  assert.equal(await branch({ hash: 'no hash' }, null), 'same');
  assert.equal(await branch(null, null), 'same');
});

test('logs and receipts of a node are compared in all their bytes', async (t) => {
  const program = await startProgram('dev');
  t.after(program.stop);
  const [from] = await call(program.url, 'eth_accounts');
  const hash = await call(program.url, 'eth_sendTransaction', { from, data: logging('a text that is long enough to be shortened'), gas: '0x5b8d80' });
  const change = { of: undefined };
  const lying = (log) => ({ ...log, ...change.of?.(log) });
  const logs = await call(program.url, 'eth_getLogs', { fromBlock: '0x0' });
  const receipt = await call(program.url, 'eth_getTransactionReceipt', hash);
  const changes = [changing('eth_getLogs', () => ({ result: logs.map(lying) })), changing('eth_getTransactionReceipt', () => ({ result: { ...receipt, logs: receipt.logs.map(lying) } }))];
  const site = await serveFolder(program.url, (text, body) => changes.reduce((now, each) => each(now, body), text));
  t.after(site.stop);
  const middle = ({ data }) => ({ data: `${data.slice(0, 30)}00${data.slice(32)}` });
  await onPage(browser, site, async (page) => {
    for (const [of, says] of [[undefined], [() => ({ address: from }), `address "${from}"`], [middle, 'data "0x'], [() => ({ blockHash: hash }), `blockHash "${hash}"`]]) {
      change.of = of;
      await visit(page, '#/block/1', 'Block 1');
      await visit(page, '#/logs', 'Logs');
      assert.equal(await page.locator('#page .log li .note.bad').count(), says ? 1 : 0, says);
      if (says) assert.ok((await page.textContent('#page .log li .note.bad')).startsWith(`caught lying The node says: ${says}`), says);
      await visit(page, `#/tx/${hash}`, 'Transaction');
      const counted = says && !says.startsWith('blockHash');
      assert.equal(await page.locator('#page .note.bad').count(), counted ? 1 : 0, says);
    }
  });
});
