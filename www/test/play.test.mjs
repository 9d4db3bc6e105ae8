// The development chain to play with.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from './lib/browser.mjs';
import { onPage } from './lib/page.mjs';
import { serveFolder, startSite } from './lib/site.mjs';
import { openSources } from './lib/source.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const button = (page, name) => page.locator('#playground').getByRole('button', { name, exact: true });
const line = (page, text) => page.waitForFunction((part) => document.querySelector('#playground .log li')?.textContent.includes(part), text);
const head = (page, number) => page.waitForFunction((text) => document.querySelector('#head')?.textContent === text, `#${number}`);

test('payments, contracts, calls, traces and snapshots work, and the blocks above follow', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground tbody tr');
    const listed = await page.getByLabel('From', { exact: true }).locator('option').count();
    assert.match(await page.textContent('#playground .panel'), new RegExp(`^Pay${listed} accounts `), 'as many accounts are told as are listed');
    await button(page, 'Send').click();
    await line(page, 'Account 1 paid 1 RBTC to Account 2, in block 6');
    await head(page, 6);
    await button(page, 'Deploy').click();
    await line(page, 'A counter is at 0x');
    await button(page, 'Take a snapshot').click();
    await line(page, 'A snapshot of everything at block 7');
    await button(page, 'Send as a transaction').click();
    await line(page, 'increment() in block 8');
    // The chain goes back only after the light client has seen block 8.
    await head(page, 8);
    await button(page, 'number').click();
    await button(page, 'Ask').click();
    await line(page, 'number() answers 1');
    await page.locator('#playground .log').getByRole('button', { name: 'Trace' }).first().click();
    await page.waitForSelector('#trace tbody tr');
    const instructions = await page.locator('#trace tbody th').allTextContents();
    assert.ok(instructions.includes('SSTORE') && instructions.at(-1) === 'STOP', instructions.join(' '));
    await button(page, 'Back to block 7').click();
    await page.waitForFunction(() => document.querySelector('#height')?.textContent === '7');
    await line(page, 'The light client above keeps the longer branch');
    assert.equal(await page.getByRole('button', { name: 'Mine 2', exact: true }).count(), 1);
    await page.locator('#playground .log').locator('li', { hasText: 'increment() in block 8' }).getByRole('button', { name: 'Trace' }).click();
    await line(page, 'the chain no longer has this transaction');
    await page.waitForFunction(() => document.querySelector('#height')?.textContent === '7');
    await button(page, 'Ask').click();
    await line(page, 'number() answers 0');
    // The light client keeps the branch with more work, and follows the new one when it has more.
    assert.equal(await page.textContent('#head'), '#8');
    await button(page, 'Mine 10').click();
    await head(page, 17);
  });
});

test('code with a mistake is refused with its line, and bytes of a compiler are deployed as they are', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground textarea');
    for (const empty of ['', ' ; nothing', '0x']) {
      await page.getByLabel('Its code').fill(empty);
      await button(page, 'Deploy').click();
      await line(page, 'there is no code');
      await page.locator('#playground .log li').first().evaluate((each) => each.remove());
    }
    await page.getByLabel('Its code').fill('PUSH 1\nJUMPP');
    await button(page, 'Deploy').click();
    await line(page, 'line 2: JUMPP is no instruction');
    await page.getByLabel('Its code').fill('0x600a600c600039600a6000f3602a60005260206000f3');
    await button(page, 'Deploy').click();
    await line(page, 'is at 0x');
    await button(page, 'by hand').click();
    await page.getByLabel('Function', { exact: true }).fill('0x');
    await button(page, 'Ask').click();
    await line(page, '0x answers 42');
  });
});

/** The reason with which the test's contract refuses: it holds a character that turns the direction of what follows. */
const REASON = 'no \u202e<b>';

/** Bytecode and ABI as a compiler gives them: the constructor stores a number, which `stored` returns; `refuse` and `divide` revert. */
async function compiled(t) {
  const sources = await openSources();
  t.after(sources.close);
  const { assemble, deployment } = await sources.load('contracts/assemble.ts');
  const { selector } = await sources.load('contracts/abi.ts');
  const { toHex } = await sources.load('bytes.ts');
  const reason = Buffer.from(REASON);
  const jump = (name) => `DUP1 PUSH ${toHex(selector(`${name}()`))} EQ PUSH @${name} JUMPI\n`;
  const code = assemble(`PUSH 0 CALLDATALOAD PUSH 0xe0 SHR
    ${['stored', 'refuse', 'divide'].map(jump).join('')} PUSH 0 PUSH 0 REVERT
    stored: PUSH 0 SLOAD PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN
    refuse: PUSH 0x08c379a0 PUSH 0xe0 SHL PUSH 0 MSTORE PUSH 32 PUSH 4 MSTORE PUSH ${reason.length} PUSH 36 MSTORE
      PUSH 0x${reason.toString('hex').padEnd(64, '0')} PUSH 68 MSTORE PUSH 100 PUSH 0 REVERT
    divide: PUSH 0x4e487b71 PUSH 0xe0 SHL PUSH 0 MSTORE PUSH 0x12 PUSH 4 MSTORE PUSH 36 PUSH 0 REVERT`);
  const bytecode = toHex(deployment(code, 'PUSH 32 DUP1 CODESIZE SUB PUSH 0 CODECOPY PUSH 0 MLOAD PUSH 0 SSTORE'));
  const entry = (name, stateMutability) => ({ type: 'function', name, stateMutability, inputs: [], outputs: [] });
  const abi = [{ type: 'constructor', inputs: [{ name: 'start', type: 'uint256' }] }, entry('stored', 'view'), entry('refuse', 'nonpayable'), entry('divide', 'nonpayable'), entry('absent', 'nonpayable')];
  return { bytecode, abi: JSON.stringify({ abi }) };
}

test('pasted bytecode is deployed with its ABI, whose functions are buttons, and refusals are said in words', async (t) => {
  const { bytecode, abi } = await compiled(t);
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#playground textarea');
    await page.locator('#playground').getByLabel('Contract', { exact: true }).selectOption({ label: 'Bytecode of your own' });
    await page.getByLabel('Its code').fill(bytecode);
    await page.getByLabel('Its ABI').fill(abi);
    await button(page, 'Deploy').click();
    await line(page, 'the function takes 1 arguments, 0 given');
    await page.getByLabel('Arguments of its constructor').fill('77');
    await button(page, 'Deploy').click();
    await line(page, 'Bytecode of your own is at 0x');
    assert.deepEqual(await page.locator('#playground .tabs button').allTextContents(), ['stored', 'refuse', 'divide', 'absent', 'by hand']);
    await button(page, 'Ask').click();
    await line(page, 'stored() answers 77');
    const refuses = async (name, words) => {
      await button(page, name).click();
      await button(page, 'Ask').click();
      await line(page, words);
      await button(page, 'Send as a transaction').click();
      await line(page, `${name}() was mined, but changed nothing except the fee: ${words}`);
    };
    await refuses('refuse', 'the contract refuses: no \\u{202e}<b>');
    await refuses('divide', 'the contract stops: a division by zero');
    await refuses('absent', 'the contract refuses, and gives no reason');
    await page.locator('#playground .log').getByRole('button', { name: 'Trace' }).first().click();
    await page.waitForSelector('#trace tbody tr');
    assert.equal(await page.locator('#playground b').count(), 0);
  });
});

test('time passes at a press, and the light client follows', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    const time = () => page.textContent('#chain-time').then((text) => Date.parse(text.replace(' UTC', 'Z').replace(' ', 'T')));
    await page.waitForFunction(() => document.querySelector('#chain-time')?.textContent.endsWith('UTC'));
    const before = await time();
    await button(page, 'One hour later').click();
    await line(page, 'An hour passed at once');
    await button(page, 'One day later').click();
    await line(page, 'A day passed at once');
    const passed = (await time()) - before;
    assert.ok(passed >= 25 * 3_600_000 && passed <= 26 * 3_600_000, `${passed} ms`);
    await head(page, 7);
  });
});

test('on a server’s page the chain in the tab starts on request and leaves the server’s chain alone', async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await onPage(browser, site, async (page) => {
    await page.getByRole('button', { name: 'Start a chain in this tab' }).click();
    await page.waitForSelector('#playground tbody tr');
    await button(page, 'Send').click();
    await line(page, 'Account 1 paid 1 RBTC to Account 2');
    assert.equal(await page.textContent('#head'), '#0', 'the server’s chain');
  });
});

test('a transaction that was not sent has no receipt, whatever a node of a fork says', async (t) => {
  const sources = await openSources();
  t.after(sources.close);
  const { Bench } = await sources.load('play/bench.ts');
  const receipt = { status: '0x1', blockNumber: '0x2', transactionHash: '0xbb' };
  const sent = (error) => {
    const answers = { eth_getBlockByNumber: { transactions: ['0xaa', '0xbb'] }, eth_getTransactionReceipt: receipt };
    const request = async ({ method }) => (method === 'eth_sendTransaction' ? Promise.reject(Object.assign(new Error(error.message), error)) : answers[method]);
    return Object.assign(Object.create(Bench.prototype), { source: { chain: { request } }, changed() {} }).send({});
  };
  await assert.rejects(sent({ code: -32000, message: 'no proof of account 0x12: upstream error -32000: execution reverted' }), /upstream error/);
  assert.equal(await sent({ code: 3, message: 'transaction reverted' }), receipt);
});
