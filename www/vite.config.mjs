// Builds the page with Vite: `cargo xtask build` runs it, and native/server/build.rs embeds the result in the program.
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

/** The folder of the package. */
const PACKAGE = fileURLToPath(new URL('../pkg/', import.meta.url));

/**
 * Replaces the package's modules for clients and chains on the page's own thread by functions that load them when they are called. They are most of
 * the package, and the page needs them only if no worker starts.
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
 * Adds a link to the light client's worker to the page, so that the browser loads the script before the client is started.
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
 * Minifies the bundler's output once more, which saves 2 % of the bytes that are sent. The bundler (Rolldown) writes each script as a module, and
 * each worker as one function.
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

/** Sets of parameters of brotli, of which the best for a file is used. WebAssembly modules are shortest in the mode that is called FONT. */
const BROTLI = [{ [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_FONT }, {}, { [constants.BROTLI_PARAM_NDIRECT]: 12 }];

/** The shortest compressed form of a file. A WebAssembly module takes seconds, so that only the first set is tried. */
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
    // Keeps the function light-dark() of CSS: all browsers with the WebAssembly features of the module have it.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: OUT,
    emptyOutDir: false,
    // The page's security policy allows no data: addresses and no inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: { fs: { allow: ['..'] } },
});
