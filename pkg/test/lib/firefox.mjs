// Headless Firefox without a driver: the page itself reports what it found.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listen } from './upstream.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.html': 'text/html' };
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' http://127.0.0.1:*";

const PAGE = '<!doctype html><meta charset="utf-8"><title>Rootlight in Firefox</title><script type="module" src="/page-script.js"></script>';

/** Runs an async function with one argument in a page of this package, and returns its result. */
export async function inFirefox(work, argument, { within = 90_000 } = {}) {
  const script = `const report = (found) => fetch('/report', { method: 'POST', body: JSON.stringify(found) });
    (${work})(${JSON.stringify(argument)}).then((value) => report({ value }), (error) => report({ error: String(error?.stack ?? error) }));`;
  let report;
  const reported = new Promise((resolve) => (report = resolve));
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, 'http://localhost').pathname);
    if (path === '/report') {
      let body = '';
      for await (const piece of request) body += piece;
      report(JSON.parse(body));
      return response.end();
    }
    try {
      const bytes = { '/': PAGE, '/page-script.js': script }[path] ?? readFileSync(ROOT + path);
      response.setHeader('content-type', TYPES[extname(path) || '.html'] ?? 'application/octet-stream');
      response.setHeader('content-security-policy', POLICY);
      return response.end(bytes);
    } catch {
      return response.writeHead(404).end();
    }
  });
  const { url, close } = await listen(server);
  const profile = mkdtempSync(join(tmpdir(), 'rootlight-firefox-'));
  const firefox = spawn(process.env.FIREFOX ?? 'firefox-esr', ['--headless', '--no-remote', '--profile', profile, `${url}/`], {
    stdio: 'ignore',
    env: { ...process.env, HOME: profile },
  });
  const ended = new Promise((resolve) => firefox.once('exit', resolve));
  const failed = new Promise((_, reject) => {
    firefox.once('error', reject);
    setTimeout(() => reject(new Error(`the page reported nothing in ${within / 1000} s`)), within).unref();
  });
  try {
    const { value, error } = await Promise.race([reported, failed]);
    if (error) throw new Error(error);
    return value;
  } finally {
    firefox.kill();
    await ended;
    await close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
