// The browser package in this process.
import { createProvider } from '../../../pkg/index.js';

/** Interval at which the client polls for a new head, in seconds. */
const POLL = 0.1;

export async function open({ url, genesis, block }) {
  const provider = await createProvider({ network: 'regtest', upstreams: url, checkpoint: { number: 0, hash: genesis }, pollSeconds: POLL, store: null });
  const follow = async ({ number }) => {
    while (Number(await provider.request({ method: 'eth_blockNumber', params: [] })) < Number(number)) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await follow(block);
  return {
    follow,
    call: (transaction) => provider.request({ method: 'eth_call', params: [transaction, 'latest'] }),
    close: async () => provider.close(),
  };
}
