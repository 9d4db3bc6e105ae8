// Loads TypeScript modules of the page into Node.js, so that unit tests need no browser.
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

/** Runs work with a function that imports a module of `src`. */
export async function withSources(work) {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const server = await createServer({ root, configFile: false, logLevel: 'error', server: { middlewareMode: true, ws: false, watch: null }, appType: 'custom' });
  try {
    return await work((path) => server.ssrLoadModule(`/src/${path}`));
  } finally {
    await server.close();
  }
}
