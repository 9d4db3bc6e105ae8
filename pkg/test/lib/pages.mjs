// Serves folders of this package as a web site on loopback.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listen } from './upstream.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };

/** The policy of a careful site: no eval; WebAssembly, its own scripts and connections to loopback are allowed. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' http://127.0.0.1:* http://localhost:* ws://127.0.0.1:*";

/** A policy that forbids workers. */
const NO_WORKERS = POLICY.replace("worker-src 'self'", "worker-src 'none'");

/**
 * Returns {url, close}. A page whose address ends with `?no-workers` may not use workers. The server does not keep a test running that fails before it
 * closes it.
 */
export async function servePackage() {
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url, 'http://localhost');
    const path = normalize(pathname);
    try {
      const bytes = await readFile(ROOT + path);
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
      response.setHeader('content-security-policy', search === '?no-workers' ? NO_WORKERS : POLICY);
      response.setHeader('service-worker-allowed', '/');
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  const site = await listen(server);
  server.unref();
  return site;
}
