// This package in a real page.
import { startBrowser } from './browser.mjs';
import { servePackage } from './pages.mjs';

/**
 * Opens a page that can load this package's files: {run, reload, tab, limitStorage, setOffline, sharedWorkers, close}. `run(asyncFunction, ...args)` runs in the page;
 * `reload(query)` loads it again; `tab()` opens another tab and returns its `run`, with `run.leave()`, which shows an empty page there;
 * `limitStorage(bytes)` limits what the site may store; `setOffline(whether)` takes the page's network away; these and `sharedWorkers()` are undefined in Firefox.
 */
export async function openPage() {
  const site = await servePackage();
  const browser = await startBrowser();
  const page = `${site.url}/test/page.html`;
  const close = async () => {
    await browser.close();
    await site.close();
  };
  try {
    await browser.open(page);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    run: browser.run,
    sharedWorkers: browser.sharedWorkers,
    reload: (query = '') => browser.open(`${page}${query}`),
    async tab() {
      const { open, run } = await browser.tab();
      await open(page);
      return Object.assign(run, { leave: () => open('about:blank') });
    },
    ...(browser.command && throttled(browser.command, site.url)),
    close,
  };
}

/** What only Chromium's DevTools protocol can limit. */
const throttled = (command, origin) => ({
  limitStorage: (bytes) => command('Storage.overrideQuotaForOrigin', { origin, quotaSize: bytes }),
  async setOffline(offline) {
    await command('Network.enable');
    await command('Network.emulateNetworkConditions', { offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  },
});

/** Calls `work(run, reload, tab)` with the functions of a page of its own: see {@link openPage}. */
export async function inPage(work) {
  const { run, reload, tab, close } = await openPage();
  try {
    return await work(run, reload, tab);
  } finally {
    await close();
  }
}
