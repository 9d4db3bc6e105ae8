// Allows the page to start the package's own workers, from the folder of its scripts. The security policy of the server requires trusted types (a
// feature of browsers), by which a page may start no other script.

/** The folder of the page's scripts; their names contain hashes of their contents. */
const FOLDER = new URL('.', import.meta.url).href;
/** The names of the workers' scripts. */
const WORKER = /^(dev-)?worker-[\w-]+\.js$/;

/** The part of the API of trusted types that is used here. */
interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL(given: string): string | null }): unknown;
}

/**
 * Makes the default policy of trusted types, in browsers that have them. The policy has no rule for HTML and for texts of scripts, which stay
 * forbidden.
 */
export function allowWorkers(): void {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
  trustedTypes?.createPolicy('default', {
    createScriptURL: (given) => (given.startsWith(FOLDER) && WORKER.test(given.slice(FOLDER.length)) ? given : null),
  });
}
