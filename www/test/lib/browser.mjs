// The system's Chromium, driven by Playwright, and what a page must not do.
import { chromium } from 'playwright-core';

const PROGRAMS = process.env.CHROMIUM ?? '/usr/bin/chromium';

export const startBrowser = (...args) => chromium.launch({ executablePath: PROGRAMS, args: ['--headless', '--no-sandbox', '--disable-gpu', ...args] });

/**
 * Opens an address in a tab of its own. Returns {page, complaints, requests, close}: `complaints` are errors of scripts, lines
 * that the browser writes about its policy, and requests to other servers; `requests` all addresses that were fetched, and
 * when (milliseconds since 1970). `script` runs before the page's own scripts.
 */
export async function openPage(browser, url, { script, ...options } = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const [complaints, requests] = [[], []];
  page.on('pageerror', (error) => complaints.push(`script: ${error.message}`));
  page.on('console', (line) => {
    if (line.type() === 'error' && !/status of 40[45]/.test(line.text())) complaints.push(`console: ${line.text()}`);
  });
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    requests.push({ method: request.method(), url: request.url(), at: Date.now() });
    if (new URL(request.url()).origin !== new URL(url).origin) complaints.push(`foreign request: ${request.url()}`);
  });
  await page.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  if (script) await page.addInitScript(script);
  await page.goto(url);
  return { page, complaints, requests, close: () => context.close() };
}

/** Waits until the light client answers. */
export const ready = (page) => page.waitForFunction(() => document.documentElement.dataset.ready !== undefined, undefined, { timeout: 30_000 });
