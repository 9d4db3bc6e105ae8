// Firefox: the package's main flow, and the page's first screen. The system's Firefox is driven by WebDriver BiDi, because Playwright
// drives a Firefox of its own only. The step of `cargo xtask test` sets BROWSER=firefox.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser } from '../../../pkg/test/lib/browser.mjs';
import { serveChain } from '../../../pkg/test/lib/chain-server.mjs';
import { servePackage } from '../../../pkg/test/lib/pages.mjs';
import { LIMIT, until } from '../../../pkg/test/lib/wait.mjs';
import { call, startSite } from '../lib/site.mjs';

let browser;
before(async () => {
  assert.equal(process.env.BROWSER, 'firefox');
  browser = await startBrowser();
});
after(() => browser?.close());

test('the package starts, proves a balance, and emits new blocks', LIMIT, async (t) => {
  const [served, site] = await Promise.all([serveChain(3), servePackage()]);
  t.after(() => Promise.all([served.close(), site.close()]));
  const [account] = await served.ask('eth_accounts');
  await browser.open(`${site.url}/test/page.html`);
  assert.match(await browser.run(async () => navigator.userAgent), /Firefox\//);
  const flow = await browser.run(async (upstream, account) => {
    const { createProvider } = await import('/index.js');
    const provider = await createProvider({ network: 'regtest', upstream, store: null, pollSeconds: 0.2 });
    globalThis.heads = [];
    provider.on('message', ({ type, data }) => type === 'eth_subscription' && globalThis.heads.push(data.result.number));
    await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
    return [await provider.requestWithLevel({ method: 'eth_getBalance', params: [account, 'latest'] }), await provider.request({ method: 'eth_blockNumber', params: [] })];
  }, served.url, account);
  const balance = await served.ask('eth_getBalance', account, 'latest');
  assert.deepEqual([flow[0].result, flow[1]], [balance, '0x3']);
  await served.ask('evm_mine');
  await until(() => browser.run(async () => globalThis.heads.includes('0x4')), 'the new block');
});

/** What the visitor sees of an element; waits until the text matches. */
const says = (selector, pattern) =>
  until(() => browser.run(async (selector, source) => new RegExp(source, 's').test(document.querySelector(selector)?.textContent ?? ''), selector, pattern.source), `${selector} ${pattern}`);

test('the page’s first screen: the chain, a lie and who notices it, and a search', LIMIT, async (t) => {
  const site = await startSite('dev');
  t.after(site.stop);
  await call(site.node, 'evm_mine');
  await browser.open(`${site.url}/`);
  await says('#status .strip-line', /development chain#1 newest block.*proven.*no lie caught so far/);
  await browser.run(async () => document.querySelector('#make-lie').click());
  await says('#shown', /^1,010,001\.6 RBTC$/);
  await says('#demo .side.good', /liar caught.*The node was caught/);
  await browser.run(async () => {
    document.querySelector('#search input').value = '1';
    document.querySelector('#search form').requestSubmit();
  });
  await says('#page h1', /^Block 1$/);
  assert.equal(await browser.run(async () => document.querySelectorAll('#page .rung.good').length), 5);
});
