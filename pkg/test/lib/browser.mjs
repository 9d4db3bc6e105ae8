// A headless browser, controlled through its driver by the WebDriver protocol only: Chromium, or Firefox with BROWSER=firefox.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { connectBidi } from './bidi.mjs';

/** The same browser arguments as for the measurements in `bench`. */
const OPTIONS = JSON.parse(readFileSync(new URL('../../../bench/webdriver.json', import.meta.url), 'utf8'));

/** Most milliseconds that a script in the page may run: the longest takes half a minute on a fast machine. */
const PATIENCE = 1_800_000;

/** Sends a command to the driver. `fetch` would not wait for the end of a script for longer than five minutes. */
async function ask(url, method, body) {
  const sent = request(url, { method, headers: { 'content-type': 'application/json' }, agent: false });
  sent.end(body && JSON.stringify(body));
  const [response] = await once(sent, 'response');
  const { value } = await json(response);
  if (response.statusCode !== 200) throw new Error(`${value.error}: ${value.message}`);
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

/** What differs between the browsers: the driver, the line in which it names its port, and what a session asks for. */
const CHROMIUM = {
  driver: [process.env.CHROMEDRIVER ?? 'chromedriver', ['--port=0']],
  ready: /started successfully on port (\d+)/,
  capabilities(flags, profile) {
    const { args, ...chrome } = OPTIONS['goog:chromeOptions'];
    const options = { ...chrome, args: [...args, ...flags, `--user-data-dir=${profile}`] };
    if (process.env.CHROMIUM) options.binary = process.env.CHROMIUM;
    return { 'goog:chromeOptions': options };
  },
};
const FIREFOX = {
  driver: [process.env.GECKODRIVER ?? 'geckodriver', ['--port=0', '--websocket-port=0', '--log=info']],
  ready: /Listening on 127\.0\.0\.1:(\d+)/,
  // geckodriver makes a profile of its own for each session.
  capabilities: () => ({ webSocketUrl: true, 'moz:firefoxOptions': { binary: process.env.FIREFOX ?? 'firefox-esr', args: ['-headless'] } }),
};

const firefox = process.env.BROWSER === 'firefox';
const kind = firefox ? FIREFOX : CHROMIUM;

/** The option of tests that need the DevTools protocol of Chromium, or something that Firefox does otherwise. */
export const chromiumOnly = { skip: firefox && 'needs Chromium' };

async function tryDriver() {
  const driver = spawn(...kind.driver, { stdio: ['ignore', 'pipe', 'inherit'] });
  const failed = new Promise((_, reject) => driver.once('error', reject));
  const ready = (async () => {
    for await (const line of createInterface({ input: driver.stdout })) {
      const port = kind.ready.exec(line)?.[1];
      if (port) return `http://127.0.0.1:${port}`;
    }
    throw new Error(`${kind.driver[0]} ended before it was ready`);
  })();
  const url = await Promise.race([ready, failed]);
  // The driver must be able to go on writing.
  driver.stdout.resume();
  return { driver, url };
}

/** Starts a browser with more `flags`: {open(url), run(asyncFunction, ...args), tab(), command(name, params), devtools, close()}. */
export async function startBrowser({ flags = [] } = {}) {
  const { driver, url } = await startDriver();
  const profile = mkdtempSync(join(tmpdir(), 'rootlight-page-'));
  const end = async () => {
    driver.kill();
    await new Promise((resolve) => (driver.exitCode === null ? driver.once('exit', resolve) : resolve()));
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const created = await ask(`${url}/session`, 'POST', {
      capabilities: { alwaysMatch: { ...kind.capabilities(flags, profile), timeouts: { script: PATIENCE } } },
    });
    const session = `${url}/session/${created.sessionId}`;
    const bidi = firefox && (await connectBidi(created.capabilities.webSocketUrl));
    /** Runs work in one tab; tabs take turns. */
    const inTab = (handle) => {
      const here = () => ask(`${session}/window`, 'POST', { handle });
      return {
        open: (page) => here().then(() => ask(`${session}/url`, 'POST', { url: page })),
        run: async (work, ...args) => {
          await here();
          return outcome(await (bidi ? bidi.run(handle, work, args) : runInPage(session, work, args)));
        },
      };
    };
    return {
      ...inTab(await ask(`${session}/window`, 'GET')),
      /** Sends a command of Chromium's DevTools protocol; undefined in Firefox. */
      command: firefox ? undefined : (cmd, params = {}) => ask(`${session}/goog/cdp/execute`, 'POST', { cmd, params }),
      /** Where Chromium's DevTools protocol is served; undefined in Firefox. */
      devtools: created.capabilities['goog:chromeOptions']?.debuggerAddress,
      /** Another tab: its `open` and `run`. */
      tab: async () => inTab((await ask(`${session}/window/new`, 'POST', { type: 'tab' })).handle),
      close: async () => {
        if (bidi) bidi.close();
        await ask(session, 'DELETE').catch(() => {});
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Runs an async function in a page of Chromium: {value} or {error}. */
const runInPage = (session, work, args) => {
  const script = `const done = arguments[arguments.length - 1];
    (${work})(...[].slice.call(arguments, 0, -1)).then(
      (value) => done({ value }),
      (error) => done({ error: { message: String(error?.message ?? error), code: error?.code, stack: error?.stack } }));`;
  return ask(`${session}/execute/async`, 'POST', { script, args });
};

/** What a function in a page returned; throws what it threw. */
function outcome({ value, error }) {
  // The stack of an error has no message in Firefox.
  if (error) throw Object.assign(new Error(error.message), error, { stack: `${error.message}\n${error.stack}` });
  return value;
}
