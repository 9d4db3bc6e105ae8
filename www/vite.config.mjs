import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineConfig } from 'vite';

/** Where the build goes: the folder that the program embeds, unless a test wants another one. */
const OUT = process.env.PAGE_DIST ?? fileURLToPath(new URL('dist', import.meta.url));

/**
 * Removes the last build. Vite would also remove dist/.gitignore, which keeps the folder in the repository.
 * @type {import('vite').Plugin}
 */
const clean = {
  name: 'clean',
  apply: 'build',
  buildStart() {
    mkdirSync(OUT, { recursive: true });
    for (const name of readdirSync(OUT)) if (name !== '.gitignore') rmSync(`${OUT}/${name}`, { recursive: true });
  },
};

const PACKAGE = fileURLToPath(new URL('../pkg/', import.meta.url));

/**
 * The package's clients and chains run in workers. What they need on the page's own thread is most of the package, and is loaded only where
 * no worker starts.
 * @type {import('vite').Plugin}
 */
const late = {
  name: 'late',
  enforce: 'pre',
  resolveId: (id, importer) => (/^\.\/(light|dev)-module\.js$/.test(id) && /\/pkg\/(index|dev)\.js$/.test(importer) ? `\0late ${PACKAGE}${id.slice(2)}` : undefined),
  load(id) {
    if (!id.startsWith('\0late ')) return undefined;
    const names = ['load', 'openClient', 'openChain'];
    return names.map((name) => `export const ${name} = async (...given) => (await import('${id.slice(6)}')).${name}(...given);`).join('\n');
  },
};

/**
 * Names the light client's worker in the page, so that its script is there when the chain is known.
 * @type {import('vite').Plugin}
 */
const early = {
  name: 'early',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler(_, { bundle }) {
      const worker = Object.keys(bundle).find((name) => /\/worker-[\w-]+\.js$/.test(name));
      return [{ tag: 'link', attrs: { rel: 'preload', as: 'script', href: `./${worker}` } }];
    },
  },
};

/**
 * Writes each file also compressed, as the program embeds it.
 * @type {import('vite').Plugin}
 */
const compress = {
  name: 'compress',
  apply: 'build',
  closeBundle() {
    const names = readdirSync(OUT, { recursive: true, withFileTypes: true });
    for (const entry of names.filter((each) => each.isFile() && each.name !== '.gitignore')) {
      const path = `${entry.parentPath}/${entry.name}`;
      const plain = readFileSync(path);
      writeFileSync(`${path}.br`, brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } }));
      writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
    }
  },
};

export default defineConfig({
  // The page may be below a base path, so it names its files relative to itself.
  base: './',
  plugins: [clean, late, early, compress],
  build: {
    target: 'es2022',
    // light-dark() stays as it is written: all browsers with the WebAssembly features of the module have it.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: OUT,
    emptyOutDir: false,
    // The policy allows no data: addresses and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: { fs: { allow: ['..'] } },
});
