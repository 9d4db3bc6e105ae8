// A light client over a development chain of the same process.
import { createDevChain } from '../../dev.js';
import { createProvider } from '../../index.js';
import { transportTo } from './chain-transport.mjs';
import { keepRunning } from './running.mjs';

/**
 * Starts a chain with `blocks` blocks and a client that follows it. The client uses the transport, or the list of them, that `wrap(transport, chain)` returns.
 * Returns {chain, light, options, ask, close}; `ask(method, ...params)` requests from the light client.
 */
export async function lightClient({ blocks = 3, wrap = (transport) => transport, ...more } = {}) {
  const chain = await createDevChain({ blockTime: 'manual' });
  await chain.request({ method: 'hardhat_mine', params: [`0x${blocks.toString(16)}`] });
  const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const upstreams = wrap(transportTo(chain), chain);
  const options = { network: 'regtest', checkpoint: { number: 0, hash }, upstreams, pollSeconds: 0.1, storage: null, ...more };
  const light = await createProvider(options);
  return {
    chain,
    light,
    options,
    ask: (method, ...params) => light.request({ method, params }),
    close() {
      light.close();
      chain.close();
    },
  };
}

/** Runs work with a light client, and closes it. */
export const withLight = (options, work) =>
  keepRunning(async () => {
    const setup = await lightClient(options);
    try {
      await work(setup);
    } finally {
      setup.close();
    }
  });
