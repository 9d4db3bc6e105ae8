// A Rootlight that stands before an honest one, and lies, stalls or sends any bytes where a mode says so.
import { createServer } from 'node:http';
import { listen } from './upstream.mjs';

const HEADERS = 'rootlight_getBitcoinHeaders';
const TAGS = 'rootlight_getBitcoinTags';
const ROOTSTOCK = 'rootlight_getHeaders';

/** What is done in place of a response: nothing, a byte now and then, or the end of the connection. */
const [HANGS, DRIPS, ENDS] = [Symbol('hangs'), Symbol('drips'), Symbol('ends')];

/** Milliseconds between two bytes of a response that drips. */
const DRIP = 200;

/** Most bytes of a result: as base64 it is within what a transport reads. */
const MOST = 23_000_000;

const text = (bytes) => Buffer.from(bytes).toString('base64');
const failure = (code, message) => ({ error: { code, message } });

/** The result with its bytes changed, by the return value of `change` or in place. */
function changed(result, change) {
  const bytes = Buffer.from(result, 'base64');
  return text(change(bytes) ?? bytes);
}

const flip = (at) => (bytes) => void (bytes[((at % bytes.length) + bytes.length) % bytes.length] ^= 1);

/** An RLP list of so many empty lists. */
const emptyLists = (count) => [0xf9, count >> 8, count & 255, ...new Array(count).fill(0xc0)];

/** The answers to some methods only, if they are results. */
const of = (...methods) => (change) => (asked) => (methods.includes(asked.method) && asked.result !== undefined ? change(asked) : undefined);
const [headers, tags, both, rootstock, height, proofs] = [of(HEADERS), of(TAGS), of(HEADERS, TAGS), of(ROOTSTOCK), of('eth_blockNumber'), of('eth_getProof')];

const heightsOf = (result, change) => changed(result, (bytes) => void change(bytes));

/**
 * By name, what is given in place of the honest answer, of which a mode knows `method`, `params`, `result`, how many `calls` of the method there were,
 * and the answer of a Rootlight on `other`, another chain of Bitcoin; undefined for the honest one.
 */
export const MODES = {
  'headers of Bitcoin: null': headers(() => null),
  'headers of Bitcoin: a number': headers(() => 7),
  'headers of Bitcoin: an object': headers(() => ({ lowest: '0x1', tip: '0xffffffff' })),
  'headers of Bitcoin: an empty text': headers(() => ''),
  'headers of Bitcoin: no base64': headers(() => '%%%'),
  'headers of Bitcoin: two bytes': headers(() => text([1, 2])),
  'headers of Bitcoin: an error': headers(() => failure(-32000, 'later')),
  'headers of Bitcoin: unknown at first': headers(({ calls }) => (calls < 2 ? failure(-32601, 'no') : undefined)),
  'headers of Bitcoin: cut off': headers(({ result }) => changed(result, (bytes) => bytes.subarray(0, bytes.length - 5))),
  'headers of Bitcoin: another first bit': headers(({ result }) => changed(result, flip(60))),
  'headers of Bitcoin: another last bit': headers(({ result }) => changed(result, flip(-1))),
  'headers of Bitcoin: each time another bit': headers(({ result, calls }) => changed(result, flip(9 + 997 * calls))),
  'headers of Bitcoin: zeros without an end': headers(() => text(new Uint8Array(MOST))),
  'headers of Bitcoin: twice': headers(({ result }) => changed(result, (bytes) => Buffer.concat([bytes, bytes.subarray(8)]))),
  'headers of Bitcoin: the largest height': headers(({ result }) => heightsOf(result, (bytes) => bytes.writeUInt32BE(0xffff_ffff, 4))),
  'headers of Bitcoin: a thousand higher': headers(({ result }) => heightsOf(result, (bytes) => bytes.writeUInt32BE(bytes.readUInt32BE(4) + 1_000, 4))),
  'headers of Bitcoin: a height of 0': headers(({ result }) => heightsOf(result, (bytes) => bytes.writeUInt32BE(0, 4))),
  'headers of Bitcoin: the lowest above the highest': headers(({ result }) => heightsOf(result, (bytes) => bytes.writeUInt32BE(9_999_999, 0))),
  'headers of Bitcoin: each time higher': headers(({ result, calls }) => heightsOf(result, (bytes) => bytes.writeUInt32BE(bytes.readUInt32BE(4) + 2_016 * calls, 4))),
  'headers of Bitcoin: a lighter chain': headers(({ other }) => other()),
  'headers of Bitcoin: a lighter chain from the second call on': headers(({ other, calls }) => (calls > 1 ? other() : undefined)),
  'headers of Bitcoin: a lighter chain every other time': headers(({ other, calls }) => (calls % 2 ? other() : undefined)),
  'headers of Bitcoin: none but a height': headers(({ result, params }) => (Number(params[1]) ? changed(result, (bytes) => bytes.subarray(0, 8)) : undefined)),
  'headers of Bitcoin: an empty list': headers(({ result, params }) => (Number(params[1]) ? changed(result, (bytes) => bytes.subarray(0, 9)) : undefined)),
  'headers of Bitcoin: ends': headers(() => ENDS),
  'tags: null': tags(() => null),
  'tags: an object': tags(() => ({})),
  'tags: no base64': tags(() => 'é'),
  'tags: an error': tags(() => failure(-32000, 'later')),
  'tags: another early bit': tags(({ result }) => changed(result, flip(20))),
  'tags: another last bit': tags(({ result }) => changed(result, flip(-1))),
  'tags: each time another bit': tags(({ result, calls }) => changed(result, flip(5 + 991 * calls))),
  'tags: all withheld': tags(({ params }) => text([1, ...emptyLists(Number(params[1]))])),
  'tags: too many': tags(() => text([1, ...emptyLists(4_000)])),
  'tags: lists in lists': tags(() => text([1, 0xc4, 0xc3, 0xc2, 0xc1, 0xc0])),
  'tags: a length of 4 GB': tags(() => text([1, 0xfb, 0xff, 0xff, 0xff, 0xff])),
  'tags: zeros without an end': tags(() => text(new Uint8Array(MOST))),
  'tags: of a lighter chain': tags(({ other }) => other()),
  'tags: hangs': tags(() => HANGS),
  'tags: drips': tags(() => DRIPS),
  'tags: ends': tags(() => ENDS),
  'Bitcoin: a picture': both(() => 'GIF89a'),
  'all: ends': () => ENDS,
  'all: errors': () => failure(-32000, 'no'),
  'height: the largest': height(() => '0xffffffffffffff'),
  'height: 0': height(() => '0x0'),
  'height: falls': height(({ result, calls }) => `0x${(Number(result) - 7 * calls).toString(16)}`),
  'headers: zeros without an end': rootstock(() => text(new Uint8Array(MOST))),
  'headers: a bomb': rootstock(() => text([1, 0x1f, 0, 1, 0, ...new Uint8Array(20_000).fill(255), 0])),
  'proofs: null': proofs(() => null),
  'proofs: of another value': proofs(({ result }) => ({ ...result, balance: '0x1', accountProof: result.accountProof.slice(1) })),
};

/**
 * Serves the answers of the node at `target`; `other` is a {@link import('./mined-bitcoin.mjs').MinedBitcoin}. Returns {url, become, close}: it behaves as
 * the mode that was passed to `become` last.
 */
export async function serveHostile(target, other) {
  let [mode, calls] = [() => undefined, {}];
  const open = new Set();

  function answer({ id, method, params = [] }, honest) {
    calls[method] = (calls[method] ?? 0) + 1;
    const given = mode({ method, params, result: honest.result, calls: calls[method], other: () => other.ask(method, params) });
    if (given === undefined) return honest;
    return typeof given === 'symbol' ? given : { jsonrpc: '2.0', id, ...(given?.error ? given : { result: given }) };
  }

  const server = createServer(async (request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-allow-headers', 'content-type');
    response.setHeader('connection', 'close');
    response.on('error', () => {});
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    const body = await new Response(request).text();
    const exchange = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const [asked, honest] = [JSON.parse(body), await exchange.json()];
    const answers = [asked].flat().map((one, place) => answer(one, [honest].flat()[place]));
    const odd = answers.find((one) => typeof one === 'symbol');
    if (odd === ENDS) return request.socket.destroy();
    response.setHeader('content-type', 'application/json');
    if (!odd) return response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
    open.add(response);
    const timer = odd === DRIPS ? setInterval(() => response.write(' '), DRIP) : undefined;
    return response.on('close', () => {
      clearInterval(timer);
      open.delete(response);
    });
  });
  const { url, close } = await listen(server);
  const end = () => open.forEach((response) => response.destroy());
  return {
    url,
    become(next) {
      [mode, calls] = [next, {}];
      end();
    },
    close: async () => {
      end();
      await close();
    },
  };
}
