// Patronum in this process. Its caller supplies trusted block hashes, as its interface requires.
import { createRequire } from 'node:module';

// The package's index imports packages that it does not declare as dependencies.
const { VerifyingProvider } = createRequire(import.meta.url)('@lightclients/patronum/lib/provider.js');

export async function open({ url, block }) {
  const provider = new VerifyingProvider(url, Number(block.number), block.hash);
  return {
    follow: async ({ hash, number }) => provider.update(hash, BigInt(number)),
    call: (transaction) => provider.call({ ...transaction }, 'latest'),
    close: async () => {},
  };
}
