import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { minify } from 'terser';
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
 * Shortens what the bundler has minified once more: 2 % of the bytes that are sent. Rolldown writes modules, and of workers one function each.
 * @type {() => import('vite').Plugin}
 */
const shorten = () => ({
  name: 'shorten',
  apply: 'build',
  async generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle).filter(({ type }) => type === 'chunk')) {
      const { code } = await minify(chunk.code, { module: true, compress: { passes: 3 }, format: { comments: false } });
      chunk.code = code;
    }
  },
});

/** Parameters of brotli, of which the best for a file is taken; the module is shortest in the mode that is called FONT. */
const BROTLI = [{ [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_FONT }, {}, { [constants.BROTLI_PARAM_NDIRECT]: 12 }];

/** The shortest form of a file; of a module of WebAssembly, which takes seconds, the first. */
function brotli(plain, isModule) {
  const forms = BROTLI.slice(0, isModule ? 1 : undefined).map((params) => brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length, ...params } }));
  return forms.reduce((best, form) => (form.length < best.length ? form : best));
}

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
      writeFileSync(`${path}.br`, brotli(plain, path.endsWith('.wasm')));
      writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
    }
  },
};

export default defineConfig({
  // The page may be below a base path, so it names its files relative to itself.
  base: './',
  plugins: [clean, late, early, shorten(), compress],
  worker: { plugins: () => [shorten()] },
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
