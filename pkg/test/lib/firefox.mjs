// A page of the system's Firefox, by its own protocol, WebDriver BiDi: Playwright drives a Firefox of its own only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import WebSocket from 'ws';

/** The address at which a browser that starts says that it listens. */
async function listening(browser) {
  for await (const line of createInterface({ input: browser.stderr })) {
    const url = /^WebDriver BiDi listening on (\S+)/.exec(line)?.[1];
    if (url) return url;
  }
  throw new Error('Firefox ended before it was ready');
}

/** Sends commands of the protocol: the returned function resolves to their results. */
async function connect(url) {
  const socket = new WebSocket(`${url}/session`);
  await once(socket, 'open');
  const waiting = new Map();
  let last = 0;
  socket.on('message', (data) => {
    const { id, ...answer } = JSON.parse(data);
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  return async (method, params) => {
    const id = (last += 1);
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    const { type, result, error, message } = await answered;
    if (type === 'error') throw new Error(`${error}: ${message}`);
    return result;
  };
}

/** Starts Firefox with an empty profile: {newPage(), close()}. A page has Playwright's `goto(url)` and `evaluate(expression)`. */
export async function launchFirefox() {
  const profile = mkdtempSync(join(tmpdir(), 'rootlight-page-'));
  const program = process.env.FIREFOX ?? 'firefox-esr';
  const browser = spawn(program, ['--headless', '--remote-debugging-port=0', '--profile', profile], { stdio: ['ignore', 'ignore', 'pipe'] });
  const command = await connect(await listening(browser));
  browser.stderr.resume();
  await command('session.new', { capabilities: {} });
  return {
    async newPage() {
      const { context } = await command('browsingContext.create', { type: 'tab' });
      return {
        goto: (url) => command('browsingContext.navigate', { context, url, wait: 'complete' }),
        async evaluate(expression) {
          const { type, result, exceptionDetails } = await command('script.evaluate', { expression, target: { context }, awaitPromise: true });
          if (type !== 'success') throw new Error(exceptionDetails.text);
          return result.value;
        },
      };
    },
    async close() {
      const ended = once(browser, 'exit');
      await command('browser.close', {}).catch(() => browser.kill());
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
