// Headless Chromium, controlled through its driver by the WebDriver protocol only.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';

/** The same browser arguments as for the measurements in `bench`. */
const OPTIONS = JSON.parse(readFileSync(new URL('../../../bench/webdriver.json', import.meta.url), 'utf8'));

/** Most milliseconds that a script in the page may run. */
const PATIENCE = 120_000;

async function ask(url, method, body) {
  const response = await fetch(url, { method, body: body && JSON.stringify(body) });
  const { value } = await response.json();
  if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
  return value;
}

/** The driver picks its port before it binds it; drivers that start at the same time may pick the same one. */
async function startDriver(attempts = 5) {
  try {
    return await tryDriver();
  } catch (error) {
    if (attempts <= 1 || error.code === 'ENOENT') throw error;
    return startDriver(attempts - 1);
  }
}

async function tryDriver() {
  const driver = spawn(process.env.CHROMEDRIVER ?? 'chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const failed = new Promise((_, reject) => driver.once('error', reject));
  const ready = (async () => {
    for await (const line of createInterface({ input: driver.stdout })) {
      const port = /started successfully on port (\d+)/.exec(line)?.[1];
      if (port) return `http://127.0.0.1:${port}`;
    }
    throw new Error('chromedriver ended before it was ready');
  })();
  return { driver, url: await Promise.race([ready, failed]) };
}

/** Starts a browser with more `flags`: {open(url), run(asyncFunction, ...args), tab(), command(name, params), close()}. */
export async function startBrowser({ flags = [] } = {}) {
  const { driver, url } = await startDriver();
  const profile = mkdtempSync(join(tmpdir(), 'rootlight-page-'));
  const chrome = OPTIONS['goog:chromeOptions'];
  const options = { ...chrome, args: [...chrome.args, ...flags, `--user-data-dir=${profile}`] };
  if (process.env.CHROMIUM) options.binary = process.env.CHROMIUM;
  const end = async () => {
    driver.kill();
    await new Promise((resolve) => (driver.exitCode === null ? driver.once('exit', resolve) : resolve()));
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const created = await ask(`${url}/session`, 'POST', {
      capabilities: { alwaysMatch: { 'goog:chromeOptions': options, timeouts: { script: PATIENCE } } },
    });
    const session = `${url}/session/${created.sessionId}`;
    /** Runs work in one tab; tabs take turns. */
    const inTab = (handle) => {
      const here = () => ask(`${session}/window`, 'POST', { handle });
      return {
        open: (page) => here().then(() => ask(`${session}/url`, 'POST', { url: page })),
        run: (work, ...args) => here().then(() => runInPage(session, work, args)),
      };
    };
    return {
      ...inTab(await ask(`${session}/window`, 'GET')),
      /** Sends a command of the browser's DevTools protocol. */
      command: (cmd, params = {}) => ask(`${session}/goog/cdp/execute`, 'POST', { cmd, params }),
      /** Another tab: its `open` and `run`. */
      tab: async () => inTab((await ask(`${session}/window/new`, 'POST', { type: 'tab' })).handle),
      close: async () => {
        await ask(session, 'DELETE').catch(() => {});
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Runs an async function in the page, and throws its error here. */
async function runInPage(session, work, args) {
  const script = `const done = arguments[arguments.length - 1];
    (${work})(...[].slice.call(arguments, 0, -1)).then(
      (value) => done({ value }),
      (error) => done({ error: { message: String(error?.message ?? error), code: error?.code, stack: error?.stack } }));`;
  const { value, error } = await ask(`${session}/execute/async`, 'POST', { script, args });
  if (error) throw Object.assign(new Error(error.message), error);
  return value;
}
