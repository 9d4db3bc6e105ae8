// What the tests of the page share.
import assert from 'node:assert/strict';
import { openPage, ready } from './browser.mjs';

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
