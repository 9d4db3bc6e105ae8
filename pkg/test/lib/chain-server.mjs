// A development chain of this process as a node on loopback.
import { createServer } from 'node:http';
import { createDevChain } from '../../dev.js';
import { transportTo } from './chain-transport.mjs';
import { listen } from './upstream.mjs';

/**
 * Starts a chain with `blocks` blocks and serves it with open CORS; headers are requested one by one. `asked.count` counts requests, and `asked.kinds`
 * holds those that differ; `before(request)` is awaited before each exchange and may respond itself by returning [status, headers];
 * `change(transport)` returns the transport that answers at a path that begins with `/changed`; `options` are more options of the chain.
 */
export async function serveChain(blocks, before = async () => undefined, change = (transport) => transport, options = {}) {
  const chain = await createDevChain({ blockTime: 'manual', ...options });
  const ask = (method, ...params) => chain.request({ method, params });
  if (blocks > 0) await ask('hardhat_mine', `0x${blocks.toString(16)}`);
  const { hash } = await ask('eth_getBlockByNumber', '0x0', false);
  const answer = transportTo(chain, ['rootlight_getHeaders']);
  const changed = change(answer);
  const asked = { count: 0, kinds: new Set() };
  const server = createServer(async (request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    // No connection stays open between two exchanges that would keep a program running.
    response.setHeader('connection', 'close');
    response.setHeader('access-control-allow-headers', 'content-type, authorization');
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    let body = '';
    for await (const piece of request) body += piece;
    const calls = [JSON.parse(body)].flat();
    asked.count += calls.length;
    for (const { method, params } of calls) asked.kinds.add(`${request.url} ${JSON.stringify([method, params])}`);
    const instead = await before(request);
    if (instead) return response.writeHead(...instead).end();
    response.setHeader('content-type', 'application/json');
    return response.end(await (request.url.startsWith('/changed') ? changed : answer)(body));
  });
  const { url, close } = await listen(server);
  return {
    chain,
    ask,
    url,
    asked,
    /**
     * The number of different requests during some work, at `path` if one is given. Checks for new blocks repeat theirs, for as long as the work
     * takes.
     */
    async during(work, path = '') {
      asked.kinds.clear();
      await work();
      return [...asked.kinds].filter((kind) => kind.startsWith(path)).length;
    },
    options: { network: 'regtest', checkpoint: { number: 0, hash }, upstream: url },
    close: async () => {
      await close();
      chain.close();
    },
  };
}
