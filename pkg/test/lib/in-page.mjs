// This package in a real page.
import { startBrowser } from './browser.mjs';
import { servePackage } from './pages.mjs';

/**
 * Opens a page beside this package's files and does some work with it: `run(asyncFunction, ...args)` in the page, and
 * `reload()`.
 */
export async function inPage(work) {
  const site = await servePackage();
  const browser = await startBrowser();
  const reload = () => browser.open(`${site.url}/test/page.html`);
  try {
    await reload();
    return await work(browser.run, reload);
  } finally {
    await browser.close();
    await site.close();
  }
}
