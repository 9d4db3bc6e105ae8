// The state of the source is always told, and no server is replaced by a practice chain unless the visitor says so.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { onPage, openForm, practise } from './lib/page.mjs';
import { openSources } from './lib/source.mjs';
import { call, PROGRAM, serveFolder, startProgram, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Waits until the banner tells a state. */
const tells = (page, kind, limit = 15_000) => page.waitForSelector(`#source[data-trouble=${kind}]`, { state: 'attached', timeout: limit });

/** A development chain with a page whose POSTs pass `gate` and whose answers pass `tamper`. */
async function behind(t, { tamper, gate } = {}) {
  const program = await startProgram('dev');
  t.after(program.stop);
  await call(program.url, 'hardhat_mine', '0x2');
  const site = await serveFolder(program.url, tamper, gate);
  t.after(site.stop);
  return { ...site, node: program.url };
}

/** Opens a page that is closed at the end of the test. */
async function open(t, site, hash = '') {
  const tab = await openPage(browser, `${site.url}/${hash}`);
  t.after(tab.close);
  return tab;
}

/** Changes the answers to one method. */
const changing = (method, result) => (text, body) => {
  const asked = JSON.parse(body);
  const answers = [JSON.parse(text)].flat();
  const changed = answers.map((answer) => ([asked].flat().some((each) => each.id === answer.id && each.method === method) ? { jsonrpc: '2.0', id: answer.id, ...result() } : answer));
  return JSON.stringify(Array.isArray(asked) ? changed : changed[0]);
};

test('a server with keys is asked for by name, refuses a wrong key, and a right one outlives links and reloads', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'rootlight-page-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const key = execFileSync(PROGRAM, ['keys', 'create', '--api-keys', `${folder}/keys`, '--name', 'page'], { encoding: 'utf8' }).trim();
  const site = await startSite('dev', '--api-keys', `${folder}/keys`);
  t.after(site.stop);
  const { page, requests, complaints } = await open(t, site);
  await tells(page, 'key');
  assert.equal(await page.getAttribute('html', 'data-ready'), null, 'no chain takes the server’s place');
  assert.equal(await page.locator('.chain .block').count(), 0);
  const write = async (text) => {
    await page.getByLabel('API key').fill(text);
    await page.getByRole('button', { name: 'Connect' }).click();
  };
  await write('wrong');
  await tells(page, 'refused');
  await write(key);
  await ready(page);
  assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Blocks' }).click();
  await page.reload();
  await ready(page);
  assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
  assert.ok(!page.url().includes(key), 'the key is not in the address');
  assert.ok(requests.every(({ method, url }) => method === 'POST' || !url.includes(key)), 'the key is in no other request');
  assert.deepEqual(complaints.filter((line) => !/401/.test(line)), []);
});

test('a key in the fragment is taken out of the address, and used', async (t) => {
  const site = await behind(t, { gate: (response, { url }) => url !== '/my-key' && Boolean(response.writeHead(401).end())});
  await onPage(browser, site, async (page) => {
    assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
    assert.equal(new URL(page.url()).hash, '');
  }, { hash: '#key=my-key' });
});

test('a server that is down is told, asked again by itself, and shown when it is back', async (t) => {
  let isDown = true;
  const site = await behind(t, { gate: (response) => isDown && Boolean(response.writeHead(503).end()) });
  const { page } = await open(t, site);
  await tells(page, 'down');
  assert.match(await page.textContent('#source'), /does not answer: HTTP status 503\..*The page asks again in \d+ s/s);
  assert.equal(await page.getAttribute('html', 'data-ready'), null);
  isDown = false;
  await ready(page);
  assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
  assert.equal(await page.textContent('#source'), '');
});

test('a server that hangs is told, and asked again at once on request', async (t) => {
  let hangs = true;
  const site = await behind(t, { gate: () => hangs });
  const { page } = await open(t, site);
  await tells(page, 'hanging', 25_000);
  hangs = false;
  await page.getByRole('button', { name: 'Try now' }).click();
  await ready(page);
  assert.equal(await page.getAttribute('html', 'data-ready'), 'server');
});

test('a server that synchronizes is told with its progress, and followed when it is ready', async (t) => {
  let isReady = false;
  const status = () => ({ result: { synced: isReady, currentBlock: '0x3e8', highestBlock: '0x7d0', secondsLeft: 7.2 } });
  const site = await behind(t, { tamper: changing('rootlight_syncStatus', status) });
  const { page } = await open(t, site);
  await tells(page, 'syncing');
  assert.match(await page.textContent('#source'), /synchronizing: block 1,000 of 2,000, about 8 s left/);
  assert.equal(await page.getAttribute('#source progress', 'value'), '1000');
  isReady = true;
  await ready(page);
});

test('a server of another network is named by its chain, also when it changes while the page is open', async (t) => {
  let chainId = '0x1';
  const site = await behind(t, { tamper: changing('eth_chainId', () => ({ result: chainId })) });
  const { page } = await open(t, site);
  await tells(page, 'network');
  assert.match(await page.textContent('#source'), /serves chain 0x1, which is no network of Rootstock/);
  chainId = '0x21';
  await page.getByRole('button', { name: 'Try now' }).click();
  await ready(page);
  chainId = '0x89';
  await tells(page, 'network', 60_000);
  assert.match(await page.textContent('#source'), /chain 0x89/);
  assert.equal(await page.locator('.chain .block').count(), 0, 'blocks of the former chain are taken down');
});

test('files without a node offer a practice chain, which a visitor chooses and which does not look like a real one', async (t) => {
  const site = await serveFolder();
  t.after(site.stop);
  const { page } = await open(t, site);
  await tells(page, 'absent');
  assert.equal(await page.getAttribute('html', 'data-ready'), null);
  await practise(page);
  await ready(page);
  assert.equal(await page.textContent('#status .network'), 'practice chain');
  assert.match(await page.textContent('#source'), /practice chain in this tab, not Rootstock/);
  const [practice, mined] = await page.evaluate(() => ['practice', 'mined'].map((chain) => {
    document.documentElement.dataset.chain = chain;
    return getComputedStyle(document.querySelector('#level')).color;
  }));
  assert.notEqual(practice, mined);
});

test('a node that lies beside a proven answer is counted as caught', async (t) => {
  const site = await behind(t, { tamper: changing('eth_getBalance', () => ({ result: '0xde0b6b3a7640000' })) });
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#explorer .side.bad');
    await page.waitForFunction(() => document.querySelector('#honest')?.textContent === '0 of 1');
    assert.match(await page.textContent('#status'), /1 lie caught/);
  });
});

test('a node that gives no answer is not accused', async (t) => {
  const site = await behind(t, { tamper: changing('eth_getBalance', () => ({ error: { code: -32000, message: 'busy' } })) });
  await onPage(browser, site, async (page) => {
    await page.waitForSelector('#explorer .side.good');
    assert.match(await page.textContent('#explorer .answer > .note'), /^The node gives no answer of its own/);
    assert.equal(await page.locator('#explorer .bad').count(), 0);
    assert.equal(await page.textContent('#honest'), '1 of 1');
  });
});

test('a node on another branch is not accused, and one that names the same block or none is held to its word', async (t) => {
  const sources = await openSources();
  t.after(sources.close);
  const { Session } = await sources.load('chain/session.ts');
  const block = { number: '0x7', hash: `0x${'ab'.repeat(32)}` };
  const shares = (result) => new Session({ exchange: async ([{ id }]) => [{ jsonrpc: '2.0', id, result }] }).sharesBlock(block);
  assert.equal(await shares({ hash: `0x${'cd'.repeat(32)}` }), false);
  assert.equal(await shares({ hash: block.hash }), true);
  assert.equal(await shares(null), true);
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
    await call(site.node, 'evm_mine');
    await page.waitForFunction(() => document.querySelector('#level')?.textContent === 'verified');
    await page.getByRole('button', { name: 'Show the newest block' }).click();
    await page.waitForFunction(() => document.querySelector('.drawing')?.textContent.includes('No Bitcoin miner took part'));
    assert.equal(await page.textContent('#cost'), 'next to nothing');
    assert.match(await page.textContent('#rests'), /block 0, which is trusted/);
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
