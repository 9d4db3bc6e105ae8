// This package in a real page.
import { startBrowser } from './browser.mjs';
import { servePackage } from './pages.mjs';

/**
 * Opens a page beside this package's files and does some work with it: `run(asyncFunction, ...args)` in the page,
 * `reload()`, and `tab()` for another page beside it, which gives that one's `run`.
 */
export async function inPage(work) {
  const site = await servePackage();
  const browser = await startBrowser();
  const page = `${site.url}/test/page.html`;
  const reload = () => browser.open(page);
  const tab = async () => {
    const { open, run } = await browser.tab();
    await open(page);
    return run;
  };
  try {
    await reload();
    return await work(browser.run, reload, tab);
  } finally {
    await browser.close();
    await site.close();
  }
}
