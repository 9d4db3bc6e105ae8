// Loads TypeScript modules of the page into Node.js, so that unit tests need no browser.
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

/** Returns {load, close}; `load` imports a module of `src`. */
export async function openSources() {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const options = { middlewareMode: true, ws: false, watch: null };
  const server = await createServer({ root, configFile: false, logLevel: 'error', server: options, appType: 'custom' });
  return { load: (path) => server.ssrLoadModule(`/src/${path}`), close: () => server.close() };
}
