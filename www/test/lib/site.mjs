// The built page on loopback: from the program with the page in it, or from a folder under the same policy, with POST passed on
// to a program. The second needs no new build of the program.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProgram as start } from '../../../tests/clients/program.mjs';

export { call } from '../../../tests/clients/program.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const PROGRAM = process.env.ROOTLIGHT ?? join(ROOT, 'target/debug/rootlight');
export const FOLDER = process.env.PAGE_DIST ?? join(ROOT, 'www/dist');
/** Whether the program has the page. */
export const EMBEDDED = process.env.PAGE_EMBEDDED === '1';

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };

/** The policy in native/server/src/page.rs, read from there so that the two cannot differ. */
async function policy() {
  const source = await readFile(join(ROOT, 'native/server/src/page.rs'), 'utf8');
  const text = /const POLICY: &str = "([^;]*;[\s\S]*?)";/.exec(source)?.[1];
  if (!text) throw new Error('no policy in native/server/src/page.rs');
  return text.replaceAll(/\\\n\s*/g, '');
}

/** Starts the program; resolves to {url, stop} when it answers. */
export const startProgram = (...args) => start(PROGRAM, [...args, '--silent', '--http-port', '0']);

/**
 * Serves the folder; POST goes to `upstream`, or is refused without one. `tamper(text, body)` may change the text of an answer;
 * `gate(response)` may answer a POST itself, and then returns true. `sourcify` is the address that the page may ask for functions.
 * Resolves to {url, practice, stop}; `practice` if there is no node, so that only a practice chain can be shown.
 */
export async function serveFolder(upstream, tamper = (text) => text, gate = () => false, sourcify = undefined) {
  const allowed = sourcify ? `connect-src 'self' ${new URL(sourcify).origin}` : "connect-src 'self'";
  const csp = (await policy()).replace("connect-src 'self'", allowed);
  const server = createServer(async (request, response) => {
    if (request.method === 'POST' && gate(response, request)) return undefined;
    if (request.method === 'POST' && upstream) {
      const body = await new Response(request).text();
      const answer = await fetch(new URL(request.url, upstream), { method: 'POST', headers: { 'content-type': 'application/json' }, body }).catch(() => undefined);
      if (!answer) return response.writeHead(502).end();
      return response.writeHead(answer.status, { 'content-type': 'application/json' }).end(tamper(await answer.text(), body));
    }
    const path = normalize(new URL(request.url, 'http://localhost').pathname);
    try {
      const file = join(FOLDER, path === '/' ? 'index.html' : path);
      // As the program sends it.
      const packed = /\bbr\b/.test(request.headers['accept-encoding'] ?? '') ? await readFile(`${file}.br`).catch(() => undefined) : undefined;
      const bytes = packed ?? (await readFile(file));
      const keep = path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';
      const headers = { 'cache-control': keep, ...(packed && { 'content-encoding': 'br' }), 'content-type': TYPES[extname(path) || '.html'], 'content-security-policy': csp, 'x-content-type-options': 'nosniff', ...(sourcify && { 'x-rootlight-sourcify': sourcify }) };
      return response.writeHead(200, headers).end(bytes);
    } catch {
      return response.writeHead(request.method === 'POST' ? 405 : 404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, practice: !upstream, stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}

/** The page of a running program: {url, node, stop}. */
export async function startSite(...args) {
  const program = await startProgram(...args);
  if (EMBEDDED) return { ...program, node: program.url };
  const folder = await serveFolder(program.url);
  return { url: folder.url, node: program.url, stop: async () => { await folder.stop(); await program.stop(); } };
}
