// The state of the source is always told, and no server is replaced by a practice chain unless the visitor says so.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openPage, ready, startBrowser } from './lib/browser.mjs';
import { behind, changing, onPage, practise } from './lib/page.mjs';
import { PROGRAM, serveFolder, startSite } from './lib/site.mjs';

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Waits until the banner tells a state. */
const tells = (page, kind, limit = 15_000) => page.waitForSelector(`#source[data-trouble=${kind}]`, { state: 'attached', timeout: limit });

/** Opens a page that is closed at the end of the test. */
async function open(t, site, hash = '') {
  const tab = await openPage(browser, `${site.url}/${hash}`);
  t.after(tab.close);
  return tab;
}

test('a server with keys is asked for by name, refuses a wrong key, and a right one outlives links and reloads', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'rootlight-page-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const key = execFileSync(PROGRAM, ['keys', 'create', '--api-keys', `${folder}/keys`, '--name', 'page'], { encoding: 'utf8' }).trim();
  const site = await startSite('dev', '--api-keys', `${folder}/keys`);
  t.after(site.stop);
  const { page, requests, complaints } = await open(t, site);
  await tells(page, 'key');
  assert.equal(await page.getByRole('button', { name: 'Try now' }).count(), 0, 'only a key helps');
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
  assert.match(await page.textContent('#source'), /serves chain 1, which is no network of Rootstock/);
  chainId = '0x21';
  await page.getByRole('button', { name: 'Try now' }).click();
  await ready(page);
  chainId = '0x89';
  await tells(page, 'network', 60_000);
  assert.match(await page.textContent('#source'), /chain 137,/);
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
