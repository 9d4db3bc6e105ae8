// An upstream node made from recordings, served on loopback.
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createGunzip } from 'node:zlib';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { hex, State, unhex } from './state.mjs';

const NOT_RECORDED = { error: { code: -32000, message: 'not recorded' } };

/** Lines of a JSON-lines file, compressed or not. */
export async function* jsonLines(file) {
  const raw = createReadStream(file);
  const input = file.endsWith('.gz') ? raw.pipe(createGunzip()) : raw;
  for await (const line of createInterface({ input })) if (line.trim()) yield JSON.parse(line);
}

/** A node with the contents of recordings: exchanges, and the states whose trie nodes are recorded. */
export class RecordedNode {
  #answers = new Map();
  #blocks = new Map();
  #nodes = new Map();
  #state = new State(this.#nodes);
  #head = 0n;

  /** Reads files of {"request","response"} and of trie nodes ({"hash","value"} or {"node"}), or a folder of them. */
  static async read(...paths) {
    const node = new RecordedNode();
    const inside = (path) => (statSync(path).isDirectory() ? readdirSync(path).sort().map((name) => join(path, name)) : [path]);
    for (const file of paths.filter(existsSync).flatMap(inside)) {
      if (!/\.jsonl(\.gz)?$/.test(file)) continue;
      for await (const line of jsonLines(file)) node.#take(line);
    }
    return node;
  }

  #take({ request, response, hash, value, node }) {
    if (hash && value) this.#nodes.set(hash, value);
    if (node) this.#nodes.set(hex(keccak_256(unhex(node))), node);
    if (!request?.method || !response) return;
    this.#answers.set(question(request.method, request.params), response);
    const block = response.result;
    if (request.method === 'eth_getBlockByNumber' && block?.number && typeof block.transactions?.[0] !== 'string') {
      this.#blocks.set(block.number, block).set(block.hash, block);
      if (BigInt(block.number) > this.#head) this.#head = BigInt(block.number);
    }
  }

  get head() {
    return Number(this.#head);
  }

  #block(id, full) {
    const block = this.#blocks.get(id);
    if (!block || full) return block;
    return { ...block, transactions: block.transactions.map(({ hash }) => hash) };
  }

  /** Returns {result} or {error}. */
  ask(method, params = []) {
    const [first, second, third] = params;
    if (method === 'eth_blockNumber') return { result: `0x${this.#head.toString(16)}` };
    const isBlock = method === 'eth_getBlockByNumber' || method === 'eth_getBlockByHash';
    if (isBlock && this.#blocks.has(first)) return { result: this.#block(first, second) };
    if (isBlock && method === 'eth_getBlockByNumber') return { result: null };
    const recorded = this.#answers.get(question(method, params));
    if (recorded) return 'error' in recorded ? { error: recorded.error } : { result: recorded.result };
    return this.#stateAnswer(method, first, second, third) ?? NOT_RECORDED;
  }

  #stateAnswer(method, address, second, third) {
    const root = this.#blocks.get(method === 'eth_getProof' ? third : second)?.stateRoot;
    if (!root || this.#nodes.size === 0) return undefined;
    if (method === 'eth_getProof') return { result: this.#state.proof(root, address, second) };
    if (method === 'eth_getCode') return { result: this.#state.code(root, address) };
    return undefined;
  }
}

function question(method, params) {
  return JSON.stringify([method, params ?? []]).toLowerCase();
}

/**
 * Serves a node on loopback with open CORS. `tamper(text, request)` may change the text of a response.
 * Returns {url, asked, close}; `asked.count` counts requests.
 */
export async function serveNode(node, { tamper = (text) => text } = {}) {
  const asked = { count: 0 };
  const one = (request) => {
    asked.count += 1;
    const answer = { jsonrpc: '2.0', id: request.id, ...node.ask(request.method, request.params) };
    return tamper(JSON.stringify(answer), request);
  };
  const server = createServer(async (request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-allow-headers', 'content-type');
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    let body = '';
    for await (const piece of request) body += piece;
    const message = JSON.parse(body);
    response.setHeader('content-type', 'application/json');
    return response.end(Array.isArray(message) ? `[${message.map(one).join(',')}]` : one(message));
  });
  return { ...(await listen(server)), asked };
}

/** A node of the small recording in this repository. */
export const regtestNode = () => RecordedNode.read(fileURLToPath(new URL('../../../native/recordings/regtest.jsonl.gz', import.meta.url)));

/** That node, served, and the options of a light client that follows it from its genesis. */
export async function serveRecording() {
  const node = await regtestNode();
  const upstream = await serveNode(node);
  const { result: genesis } = node.ask('eth_getBlockByNumber', ['0x0', true]);
  const checkpoint = { number: 0, hash: genesis.hash, totalDifficulty: genesis.totalDifficulty };
  return { node, upstream, options: { network: 'regtest', upstream: upstream.url, checkpoint } };
}

/** Starts a server on a free loopback port. */
export async function listen(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    });
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}
