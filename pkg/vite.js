// A plugin for Vite. Its development server must leave the package as it is, so that the worker and the module are found beside it,
// and serves the package's folder also if that is a link to one outside the project (`npm install ../rootlight/pkg`).
import { fileURLToPath } from 'node:url';

/** The folder of this package. */
const FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** Returns the plugin. */
export default function rootlight() {
  return {
    name: 'rootlight',
    config: () => ({ optimizeDeps: { exclude: ['rootlight'] } }),
    configResolved({ server }) {
      server.fs.allow.push(FOLDER);
    },
  };
}
