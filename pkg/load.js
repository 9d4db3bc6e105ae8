// Loads and compiles a WebAssembly module: with fetch on a page or in a worker, from disk in Node.js.

import { disconnected } from './life.js';

/** The module of Node.js that reads files. */
const FILES = 'node:fs/promises';

/** Advice for some HTTP statuses. Vite's development server refuses files outside the project, such as those of a linked folder, with 403. */
const ADVICE = {
  403: "; in Vite's development server, add the plugin of rootlight/vite.js",
  404: '; serve the folder dist of the package beside its scripts, or name the file with the option `module`',
};

/**
 * Compiles a module.
 * @param {URL} url the module file of this package
 * @param {unknown} [source] given by the caller instead: a URL, a Request, a Response, bytes or a WebAssembly.Module
 * @returns {Promise<WebAssembly.Module>}
 */
export async function load(url, source) {
  if (source === undefined && url.protocol === 'file:') {
    // The name is a variable so that bundlers for browsers do not resolve it. Pages do not run this line.
    const { readFile } = await import(/* @vite-ignore */ /* webpackIgnore: true */ FILES);
    return WebAssembly.compile(await readFile(url));
  }
  const given = (await source) ?? url;
  if (given instanceof WebAssembly.Module) return given;
  if (given instanceof ArrayBuffer || ArrayBuffer.isView(given)) return WebAssembly.compile(given);
  const response = given instanceof Response ? given : await fetch(given);
  if (!response.ok) throw disconnected(`the WebAssembly module cannot be loaded: HTTP status ${response.status}${ADVICE[response.status] ?? ''}`);
  // Engines refuse to compile a stream of another content type, and some servers send another one for `.wasm`.
  const streams = response.headers.get('content-type') === 'application/wasm';
  return streams ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

/** Makes a function that loads a module once and returns it again later; after a failure it tries again. It returns a compiled module unchanged. */
export function once(work) {
  let running;
  return (source) => {
    if (source instanceof WebAssembly.Module) return Promise.resolve(source);
    running ??= work(source).catch((error) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}
