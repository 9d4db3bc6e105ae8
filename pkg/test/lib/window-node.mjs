// A node on loopback whose chain has headers of the main network's length and one state, that of a development chain, and counts what it sends.
import { createServer } from 'node:http';
import { createDevChain } from '../../dev.js';
import { HeaderNode } from './headers.mjs';
import { MinedBitcoin } from './mined-bitcoin.mjs';
import { EVERY, FIRST, SPACING, mine } from './mined-chain.mjs';
import { listen } from './upstream.mjs';

/**
 * Blocks of the Bitcoin chain: a client that begins two changes of the target below its newest block receives all of them. Fewer never are more
 * bytes.
 */
const BITCOIN_BLOCKS = 4_031;

const UNKNOWN = { error: { code: -32601, message: 'method not found' } };

/** Methods that the development chain answers for its newest block, whatever block they name. */
const OF_STATE = { eth_getProof: 2 };

/**
 * Serves `length` headers, the newest of which is made now, with `isDated` on a Bitcoin chain that is served too. Returns {url, account, balance,
 * head, show, take, close}: `show(behind)` leaves out the newest headers; `take()` returns what was sent since the last call: `headers`, the number
 * of the `lowest` one, `bytes`, those up to the first proof (`proven`), and of them those about Bitcoin (`bitcoin`).
 */
export async function serveWindow(length, isDated = false) {
  const dev = await createDevChain({ blockTime: 'manual' });
  const ask = (method, ...params) => dev.request({ method, params });
  const { stateRoot } = await ask('eth_getBlockByNumber', 'latest', false);
  const [account] = await ask('eth_accounts');
  const now = Math.floor(Date.now() / 1_000);
  const bitcoin = isDated ? new MinedBitcoin(BITCOIN_BLOCKS - Math.ceil(length / EVERY), now - length * SPACING) : undefined;
  const headers = mine(length, now, Buffer.from(stateRoot.slice(2), 'hex'), bitcoin);
  let node = new HeaderNode(headers, 'binary');
  const nothing = () => ({ headers: 0, lowest: Infinity, bytes: 0, bitcoin: 0, proven: undefined });
  let sent = nothing();

  async function answer({ id, method, params = [] }) {
    if (method === 'rootlight_getHeaders') {
      const [first, count] = params.map(Number);
      sent.headers += count;
      sent.lowest = Math.min(sent.lowest, first);
    }
    const ofBitcoin = bitcoin?.ask(method, params);
    if (ofBitcoin) {
      sent.bitcoin += sent.proven ? 0 : ofBitcoin.length;
      return { jsonrpc: '2.0', id, result: ofBitcoin };
    }
    const place = OF_STATE[method];
    const ofState = async () => ({ result: await ask(method, ...params.slice(0, place), 'latest') });
    const found = place === undefined ? node.ask(method, params) : await ofState();
    return { jsonrpc: '2.0', id, ...(found.error ? UNKNOWN : found) };
  }

  const server = createServer(async (request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-allow-headers', 'content-type');
    // No connection stays open between two exchanges that would keep a program running.
    response.setHeader('connection', 'close');
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    const message = JSON.parse(await new Response(request).text());
    const answers = Array.isArray(message) ? await Promise.all(message.map(answer)) : await answer(message);
    const body = Buffer.from(JSON.stringify(answers));
    sent.bytes += body.length;
    if ([message].flat().some(({ method }) => method in OF_STATE)) sent.proven ??= sent.bytes;
    response.setHeader('content-type', 'application/json');
    return response.end(body);
  });
  const { url, close } = await listen(server);
  return {
    url,
    account,
    balance: await ask('eth_getBalance', account, 'latest'),
    head: (behind = 0) => FIRST + length - 1 - behind,
    show(behind) {
      node = new HeaderNode(headers.slice(0, length - behind), 'binary');
      bitcoin?.hide(Math.ceil(behind / EVERY));
    },
    take() {
      const taken = sent;
      sent = nothing();
      return taken;
    },
    close: async () => {
      await close();
      dev.close();
    },
  };
}
