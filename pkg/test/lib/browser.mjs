// A headless browser: the system's Chromium, driven by Playwright, or its Firefox with BROWSER=firefox.
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { launchFirefox } from './firefox.mjs';

/** The same browser arguments as for the measurements in `bench`. */
const { args: ARGUMENTS } = JSON.parse(readFileSync(new URL('../../../bench/webdriver.json', import.meta.url), 'utf8'))['goog:chromeOptions'];

const inFirefox = process.env.BROWSER === 'firefox';

/** The option of tests that need the DevTools protocol of Chromium, or something that Firefox does otherwise. */
export const chromiumOnly = { skip: inFirefox && 'needs Chromium' };

/** Starts Chromium with an empty profile. Without a profile it keeps what sites store in memory only. */
const launchChromium = (flags) =>
  chromium.launchPersistentContext('', { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: [...ARGUMENTS, ...flags] });

/** A page's `open(url)` and `run(asyncFunction, ...args)`, which throws what the function threw. Values are passed as JSON. */
const tabOf = (page) => ({
  open: (url) => page.goto(url),
  async run(work, ...args) {
    const text = await page.evaluate(`(async () => {
      try {
        return JSON.stringify({ value: await (${work})(...${JSON.stringify(args)}) });
      } catch (error) {
        return JSON.stringify({ error: { message: String(error?.message ?? error), code: error?.code, stack: error?.stack } });
      }
    })()`);
    const { value, error } = JSON.parse(text);
    // The stack of an error has no message in Firefox.
    if (error) throw Object.assign(new Error(error.message), error, { stack: `${error.message}\n${error.stack}` });
    return value;
  },
});

/**
 * Starts a browser with more `flags`: {open(url), run(asyncFunction, ...args), tab(), command(name, params), sharedWorkers(), close()}. `tab()` opens
 * another tab. `command` and `sharedWorkers` use Chromium's DevTools protocol and are undefined in Firefox.
 */
export async function startBrowser({ flags = [] } = {}) {
  const context = await (inFirefox ? launchFirefox() : launchChromium(flags));
  const page = await context.newPage();
  const devtools = !inFirefox && (await context.newCDPSession(page));
  return {
    ...tabOf(page),
    tab: async () => tabOf(await context.newPage()),
    command: devtools ? (name, params = {}) => devtools.send(name, params) : undefined,
    sharedWorkers: devtools ? () => sharedWorkers(context) : undefined,
    close: () => context.close(),
  };
}

/** The shared workers of a browser: their `count`, and `setOffline(whether)`, which takes their network away as a laptop's Wi-Fi does. */
async function sharedWorkers(context) {
  const browser = await context.browser().newBrowserCDPSession();
  const { targetInfos } = await browser.send('Target.getTargets');
  const workers = targetInfos.filter(({ type }) => type === 'shared_worker');
  const sessions = await Promise.all(workers.map(({ targetId }) => browser.send('Target.attachToTarget', { targetId, flatten: false })));
  let last = 0;
  const toAll = (method, params = {}) => {
    const message = JSON.stringify({ id: (last += 1), method, params });
    return Promise.all(sessions.map(({ sessionId }) => browser.send('Target.sendMessageToTarget', { sessionId, message })));
  };
  await toAll('Network.enable');
  return {
    count: sessions.length,
    setOffline: (offline) => toAll('Network.emulateNetworkConditions', { offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 }),
  };
}
