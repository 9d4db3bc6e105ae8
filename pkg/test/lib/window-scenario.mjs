// A visit to a chain without a trusted block, in Node.js and in a page.
import { later } from './clock.mjs';
import { until } from './wait.mjs';

/** Headers in a page. */
const HEADERS = 64;

/** Waits until the headers up to a block are stored, and Bitcoin's chain if it dates them. */
export async function stored({ pagesIn }, storage, network, head, dated = false) {
  const pages = pagesIn(storage, { network }, { isWindow: true });
  const end = Math.floor(head / HEADERS) + 1;
  await until(async () => (await pages.count()) === end, `the pages up to ${end}`);
  // The newest page is written after its number is known.
  await until(async () => (await pages.read(end - 1)) !== undefined, 'the last page');
  if (dated) await until(async () => (await pages.record())?.bitcoin !== undefined, 'the chain of Bitcoin');
  await pages.close();
}

/**
 * Proves a balance with the clock this many seconds behind, and waits until its headers are stored. Returns the answer, the block it is about,
 * where the chain starts, and `error` in place of all if there is no start.
 */
export async function visit({ createProvider }, store, options, account, behind = 0) {
  return later(-behind, async () => {
    const provider = await createProvider(options).catch(({ message }) => ({ error: message }));
    if (provider.error) return provider;
    const ask = (method, ...params) => provider.requestWithLevel({ method, params });
    try {
      const balance = await ask('eth_getBalance', account, 'latest');
      const { result: head } = await ask('eth_blockNumber');
      const { result: checkpoint } = await ask('rootlight_checkpoint');
      const { result: evidence } = await ask('rootlight_verification', head);
      if (options.storage !== null) await stored(store, options.storage, options.network, Number(head), evidence.bitcoin?.verdict === 'held');
      return { balance, head: Number(head), start: Number(checkpoint.number), evidence };
    } finally {
      provider.close();
    }
  });
}

/**
 * Proves a balance, and waits until Bitcoin supports the chain. Returns the balance, the head, the mark of the first answer, and the lies of each upstream.
 */
export async function supported({ createProvider }, options, account) {
  const provider = await createProvider(options);
  const ask = (method, ...params) => provider.requestWithLevel({ method, params });
  try {
    const { result: balance, bitcoin: mark } = await ask('eth_getBalance', account, 'latest');
    const { result: head } = await ask('eth_blockNumber');
    await until(async () => (await ask('rootlight_syncStatus')).result.bitcoin?.verdict === 'held', 'the support of Bitcoin');
    const { result: upstreams } = await ask('rootlight_upstreams');
    return { balance, head: Number(head), mark, lies: upstreams.map(({ lies }) => lies) };
  } finally {
    provider.close();
  }
}
