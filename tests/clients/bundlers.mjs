// Small projects for bundlers and runtimes without an example of their own.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORK, install, run } from './projects.mjs';

/** A page that reads a balance, and keeps what the package tells on the console: it says if no worker could be started. */
const main = (from) => `import { createProvider } from '${from}';
globalThis.notes = [];
console.info = (text) => globalThis.notes.push(text);
const query = new URLSearchParams(location.search);
globalThis.provider = await createProvider({ network: query.get('network'), upstreams: query.get('node') });
`;

/** In a page with {@link main}: the balance of an account in wei, and the notes. */
export const inBundle = async (account) => {
  for (let left = 400; left > 0 && !globalThis.provider; left -= 1) await new Promise((resolve) => setTimeout(resolve, 50));
  const balance = await globalThis.provider.request({ method: 'eth_getBalance', params: [account, 'latest'] });
  return { balance: String(BigInt(balance)), notes: globalThis.notes };
};

/** A folder with the page, whose script the bundler writes to `script`, and the package. */
function started(folder, tarball, script, ...packages) {
  mkdirSync(join(folder, 'dist'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'bundled', private: true, type: 'module' }));
  writeFileSync(join(folder, 'main.js'), main('rootlight'));
  const page = `<!doctype html><meta charset="utf-8"><title>bundled</title><script type="module" src="${script}"></script>`;
  writeFileSync(join(folder, 'dist/index.html'), page);
  install(folder, tarball, ...packages);
}

/** Each makes a project and returns the folder to serve. */
export const BUNDLERS = {
  webpack(folder, tarball) {
    started(folder, tarball, '/main.js', 'webpack@5.112.2', 'webpack-cli@7.3.1');
    run(folder, 'npx', 'webpack', 'build', '--mode', 'production', '--entry', './main.js', '--output-path', 'dist', '--output-public-path', '/');
    return join(folder, 'dist');
  },
  esbuild(folder, tarball) {
    started(folder, tarball, '/main.js', 'esbuild@0.28.2');
    const inputs = ['main.js', 'node_modules/rootlight/worker.js'];
    run(folder, 'npx', 'esbuild', ...inputs, '--bundle', '--minify', '--format=esm', '--outdir=dist', '--entry-names=[name]');
    mkdirSync(join(folder, 'dist/dist'));
    copyFileSync(join(folder, 'node_modules/rootlight/dist/rootlight_bg.wasm'), join(folder, 'dist/dist/rootlight_bg.wasm'));
    return join(folder, 'dist');
  },
  'a plain script'(folder, tarball) {
    started(folder, tarball, '/main.js');
    writeFileSync(join(folder, 'main.js'), main('/node_modules/rootlight/index.js'));
    copyFileSync(join(folder, 'dist/index.html'), join(folder, 'index.html'));
    return folder;
  },
};

/** Other runtimes and how they run a script: their packages contain the programs. */
export function runtimes() {
  const folder = join(WORK, 'runtimes');
  mkdirSync(folder, { recursive: true });
  install(folder, '--no-save', 'deno@2.9.6', 'bun@1.4.5');
  const x64 = process.arch === 'x64' ? 'x64' : 'arm64';
  const bunX64 = process.arch === 'x64' ? 'x64' : 'aarch64';
  return {
    Deno: [join(folder, `node_modules/@deno/linux-${x64}-glibc/deno`), 'run', '--quiet', '--no-prompt', '--allow-all'],
    Bun: [join(folder, `node_modules/@oven/bun-linux-${bunX64}/bin/bun`), 'run'],
  };
}
