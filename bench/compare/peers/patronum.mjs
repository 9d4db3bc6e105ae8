// Patronum in this process. Trusted block hashes are given to it by its caller, as it wants.
import { createRequire } from 'node:module';

// Its own index asks for packages that it does not name.
const { VerifyingProvider } = createRequire(import.meta.url)('@lightclients/patronum/lib/provider.js');

export async function open({ url, block }) {
  const provider = new VerifyingProvider(url, Number(block.number), block.hash);
  return {
    follow: async ({ hash, number }) => provider.update(hash, BigInt(number)),
    call: (transaction) => provider.call({ ...transaction }, 'latest'),
    close: async () => {},
  };
}
