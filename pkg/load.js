// Brings a module's bytes to its loader: by fetch on a page or in a worker, from disk in Node.js.

const FILES = 'node:fs/promises';

/**
 * @param {(input: {module_or_path: unknown}) => Promise<unknown>} init the loader made by wasm-bindgen
 * @param {URL} url where the module lies beside this package
 * @param {unknown} [source] what the caller gave instead: a URL, a Response, bytes or a WebAssembly.Module
 */
export async function load(init, url, source) {
  if (source === undefined && url.protocol === 'file:') {
    // The name is a variable so that bundlers for browsers leave it alone; a page never comes here.
    const { readFile } = await import(/* @vite-ignore */ /* webpackIgnore: true */ FILES);
    return init({ module_or_path: await readFile(url) });
  }
  return init({ module_or_path: source ?? url });
}

/** Loads once; a failed attempt can be repeated. */
export function once(work) {
  let running;
  return (...args) => {
    running ??= work(...args).catch((error) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}
