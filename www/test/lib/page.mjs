// What the tests of the page share.
import assert from 'node:assert/strict';
import { openPage, ready } from './browser.mjs';
import { call, serveFolder, startProgram } from './site.mjs';

/** Screens on which the page is looked at. */
export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } };

/** Chooses the practice chain, as a visitor does. */
export const practise = (page) => page.getByRole('button', { name: 'Use a practice chain in this tab' }).click();

/** Runs work with the page of a site, then checks that the page broke no rule. `hash` is the address's fragment, `choose`
 * how the practice chain is chosen where there is no node. */
export async function onPage(browser, site, work, { hash = '', choose = practise, ...options } = {}) {
  const tab = await openPage(browser, `${site.url}/${hash}`, options);
  try {
    if (site.practice) await choose(tab.page);
    await ready(tab.page);
    await work(tab.page, tab);
    assert.deepEqual(tab.complaints, [], 'errors and foreign requests');
    assert.deepEqual(await tab.page.evaluate(() => globalThis.violations), [], 'violations of the policy');
  } finally {
    await tab.close();
  }
}

/** Waits until the page has so many elements. */
export const has = (page, selector, count) =>
  page.waitForFunction(([selector, count]) => document.querySelectorAll(selector).length === count, [selector, count]);

/** Opens one of the explorer's forms. */
export const openForm = (page, name) => page.locator('#explorer .tab', { hasText: name }).click();

/** Looks for something in the search field, and waits for its page. */
export async function find(page, text, heading) {
  await page.getByLabel('Address, transaction or block').fill(text);
  await page.getByRole('button', { name: 'Prove it' }).click();
  await page.waitForFunction((wanted) => document.querySelector('#page h1')?.textContent === wanted, heading);
}

/** Opens each step of the ladder, and returns their titles; all must fit. */
export async function climb(page) {
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
export async function withPayment(t, tamper) {
  const program = await startProgram('dev');
  t.after(program.stop);
  const [from, to] = await call(program.url, 'eth_accounts');
  const hash = await call(program.url, 'eth_sendTransaction', { from, to, value: '0xde0b6b3a7640000', gas: '0x5208', gasPrice: '0x3b9aca00' });
  await call(program.url, 'evm_mine');
  const site = await serveFolder(program.url, tamper);
  t.after(site.stop);
  return { site: { ...site, node: program.url }, from, to, hash };
}

/** A development chain with a page whose POSTs pass `gate` and whose answers pass `tamper`. */
export async function behind(t, { tamper, gate } = {}) {
  const program = await startProgram('dev');
  t.after(program.stop);
  await call(program.url, 'hardhat_mine', '0x2');
  const site = await serveFolder(program.url, tamper, gate);
  t.after(site.stop);
  return { ...site, node: program.url };
}

/** Changes the answers to one method. */
export const changing = (method, result) => (text, body) => {
  const asked = JSON.parse(body);
  const answers = [JSON.parse(text)].flat();
  const changed = answers.map((answer) => ([asked].flat().some((each) => each.id === answer.id && each.method === method) ? { jsonrpc: '2.0', id: answer.id, ...result() } : answer));
  return JSON.stringify(Array.isArray(asked) ? changed : changed[0]);
};
