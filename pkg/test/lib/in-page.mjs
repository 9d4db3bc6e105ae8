// This package in a real page.
import { startBrowser } from './browser.mjs';
import { servePackage } from './pages.mjs';

/**
 * Opens a page that can load this package's files and calls `work` with: `run(asyncFunction, ...args)`, which runs in the page,
 * `reload()`, and `tab()`, which opens another tab and returns its `run`.
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
