// A proxy on loopback that counts requests and bytes, adds latency and can hide methods; and an upstream of
// recorded headers.
import { Agent, createServer, request as send } from 'node:http';
import { readFileSync } from 'node:fs';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function bodyOf(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function listen(answer) {
  const server = createServer(async (request, response) => {
    const body = await answer(await bodyOf(request));
    response.setHeader('content-type', 'application/json');
    response.setHeader('content-length', body.length);
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, port: server.address().port, close };
}

/** The calls of a message: of a batch all, else the one. */
const members = (body) => {
  const message = JSON.parse(body);
  return Array.isArray(message) ? message : [message];
};

/** Starts a proxy in front of `answer` (bytes to bytes). `seen` lists every exchange: methods, request, and bytes of the response. */
export async function proxy(answer, { latency = 0, hidden = () => false } = {}) {
  const state = { seen: [], inFlight: 0, most: 0, latency };
  const refuse = ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } });
  const pass = async (body) => {
    const calls = members(body);
    const shown = calls.filter(({ method }) => !hidden(method));
    if (shown.length === calls.length) return answer(body);
    const rest = shown.length ? JSON.parse(await answer(Buffer.from(JSON.stringify(shown)))) : [];
    const all = [...rest, ...calls.filter(({ method }) => hidden(method)).map(refuse)];
    return Buffer.from(JSON.stringify(body[0] === 0x5b ? all : all[0]));
  };
  const exchange = async (body) => {
    state.most = Math.max(state.most, ++state.inFlight);
    const [answered] = await Promise.all([pass(body), state.latency ? sleep(state.latency) : undefined]);
    state.inFlight--;
    state.seen.push({ methods: members(body).map(({ method }) => method), body, bytes: answered.length });
    return answered;
  };
  return Object.assign(state, await listen(exchange));
}

/** Returns a function that sends requests to a server on loopback over kept-alive connections. */
export function ask(port) {
  const agent = new Agent({ keepAlive: true });
  return (body) =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const sent = send({ host: '127.0.0.1', port, method: 'POST', agent, headers }, (response) => bodyOf(response).then(resolve, reject));
      sent.on('error', reject);
      sent.end(body);
    });
}

/** Encodes an RLP list of items that are encoded already. */
const list = (items) => {
  const body = Buffer.concat(items);
  if (body.length < 56) return Buffer.concat([Buffer.from([0xc0 + body.length]), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length < 256 ? 2 : body.length < 65_536 ? 4 : 6, '0'), 'hex');
  return Buffer.concat([Buffer.from([0xf7 + length.length]), length, body]);
};

/** Encodes the part of an LZ4 length that does not fit into the four bits of the token. */
const long = (length) => (length < 15 ? [] : [...Array(Math.floor((length - 15) / 255)).fill(255), (length - 15) % 255]);

/** Compresses to an LZ4 block in the same way as `encode_headers` in src/light/header_batch.rs. */
function lz4(bytes) {
  const seen = new Map();
  const pieces = [];
  let written = 0;
  const sequence = (end, distance, length) => {
    const beyond = distance ? length - 4 : 0;
    pieces.push(Buffer.from([(Math.min(end - written, 15) << 4) | Math.min(beyond, 15), ...long(end - written)]));
    pieces.push(bytes.subarray(written, end));
    if (distance) pieces.push(Buffer.from([distance & 255, distance >> 8, ...long(beyond)]));
    written = end + length;
  };
  for (let at = 0; at + 12 <= bytes.length; ) {
    const slot = Math.imul(bytes.readUInt32LE(at), 0x9e3779b1) >>> 18;
    const earlier = seen.get(slot);
    seen.set(slot, at);
    let length = 0;
    if (earlier !== undefined && at - earlier <= 65_535) {
      while (at + length < bytes.length - 5 && bytes[earlier + length] === bytes[at + length]) length++;
    }
    if (length >= 8) sequence(at, at - earlier, length);
    at = Math.max(at + 1, written);
  }
  sequence(bytes.length, 0, 0);
  return Buffer.concat(pieces);
}

/** Serves consecutive headers of a file ({number, hash, rlp}) in the form of `rootlight_getHeaders`. */
export function recordedHeaders(file) {
  const headers = JSON.parse(readFileSync(file, 'utf8')).headers.map(({ number, hash, rlp }) => ({
    number: Number(number),
    hash,
    entry: list([Buffer.from(rlp.replace('0x', ''), 'hex'), list([])]),
  }));
  const one = ({ id, method, params }) => {
    if (method === 'eth_blockNumber') return { jsonrpc: '2.0', id, result: `0x${headers.at(-1).number.toString(16)}` };
    if (method !== 'rootlight_getHeaders') return { jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } };
    const [first, count] = params.map(Number);
    const wanted = headers.filter(({ number }) => number >= first && number < first + count);
    return { jsonrpc: '2.0', id, result: Buffer.concat([Buffer.from([1]), lz4(list(wanted.map(({ entry }) => entry)))]).toString('base64') };
  };
  const answer = async (body) => {
    const answers = members(body).map(one);
    return Buffer.from(JSON.stringify(body[0] === 0x5b ? answers : answers[0]));
  };
  return { headers, answer };
}
