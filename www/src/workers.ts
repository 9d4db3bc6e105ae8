// Which workers this page starts: the package's own, from the folder of its scripts. The policy of the server requires trusted types,
// so that nothing else of the page can name a script.

/** The folder of the page's scripts; their names contain hashes of their contents. */
const FOLDER = new URL('.', import.meta.url).href;
const WORKER = /^(dev-)?worker-[\w-]+\.js$/;

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL(given: string): string | null }): unknown;
}

/**
 * Makes the default policy of trusted types, where the browser has them. It has no rule for HTML and scripts, which stay forbidden
 * as texts.
 */
export function allowWorkers(): void {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
  trustedTypes?.createPolicy('default', {
    createScriptURL: (given) => (given.startsWith(FOLDER) && WORKER.test(given.slice(FOLDER.length)) ? given : null),
  });
}
