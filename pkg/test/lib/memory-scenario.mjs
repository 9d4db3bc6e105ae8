// Clients whose module runs out of memory, in Node.js and in a page.
import { transportTo } from './chain-transport.mjs';

/** Size of a WebAssembly page in bytes. */
const PAGE = 65_536;

const MIB = 2 ** 20;

/** Encodes a number in LEB128, as WebAssembly does. */
function written(number) {
  const bytes = [];
  for (; number >= 0x80; number = Math.floor(number / 0x80)) bytes.push((number % 0x80) + 0x80);
  return [...bytes, number];
}

/** Reads a number in LEB128; returns it and the position after it. */
function read(bytes, at) {
  let number = 0;
  for (let shift = 1; ; shift *= 0x80) {
    const byte = bytes[at];
    at += 1;
    number += (byte % 0x80) * shift;
    if (byte < 0x80) return [number, at];
  }
}

/** Id of the memory section. */
const MEMORY = 5;

/** Limits a module's memory to `more` bytes above its initial size. */
export function withLimit(bytes, more) {
  for (let at = 8; at < bytes.length; ) {
    const [size, from] = read(bytes, at + 1);
    if (bytes[at] === MEMORY) {
      const [first] = read(bytes, from + 2);
      const limits = [1, 1, ...written(first), ...written(first + Math.ceil(more / PAGE))];
      const section = [MEMORY, ...written(limits.length), ...limits];
      const limited = new Uint8Array(at + section.length + bytes.length - from - size);
      limited.set(bytes.subarray(0, at));
      limited.set(section, at);
      limited.set(bytes.subarray(from + size), at + section.length);
      return WebAssembly.compile(limited);
    }
    at = from + size;
  }
  throw new Error('a module without memory');
}

/** Adds a member of this many bytes to each response that is an object. */
function padded(transport, bytes) {
  const padding = JSON.stringify('x'.repeat(bytes));
  return async (body) => {
    const text = new TextDecoder().decode(await transport(body));
    return new TextEncoder().encode(text.replaceAll('"result":{', `"result":{"padding":${padding},`));
  };
}

/** A chain whose every block has a log, and the options of a client that follows it. */
async function chainWithLogs({ createDevChain }, blocks) {
  const chain = await createDevChain({ blockTime: 'manual' });
  const [from] = await chain.request({ method: 'eth_accounts' });
  for (let block = 0; block < blocks; block += 1) {
    // The code logs 42.
    await chain.request({ method: 'eth_sendTransaction', params: [{ from, data: '0x602a60005260206000a0', gas: '0x30d40' }] });
    await chain.request({ method: 'evm_mine' });
  }
  const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  return { chain, options: { network: 'regtest', checkpoint: { number: 0, hash }, store: null, pollSeconds: 3_600 } };
}

const codeOf = (promise) => promise.then(() => 'an answer', ({ code }) => code);

/** Ends a client's module by a response that does not fit into its memory. Returns what its caller and other clients observe. */
export async function trapped(light, dev, bytes) {
  const { chain, options } = await chainWithLogs(dev, 1);
  const plain = transportTo(chain);
  const large = padded(plain, 11 * MIB);
  let grown = false;
  const upstream = async (body) => {
    if (body.includes('eth_getTransactionCount') || body.includes('eth_getProof')) return new Promise(() => {});
    return (grown ? large : plain)(body);
  };
  const other = await light.createProvider({ ...options, upstream: plain });
  const provider = await light.createProvider({ ...options, upstream, module: await withLimit(bytes, 8 * MIB) });
  const told = [];
  provider.on('disconnect', ({ code, message }) => told.push([code, message]));
  const [account] = await chain.request({ method: 'eth_accounts' });
  const hangs = [1, 2].map(() => codeOf(provider.request({ method: 'eth_getBalance', params: [account, 'latest'] })));
  await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  grown = true;
  const ends = codeOf(provider.request({ method: 'eth_getBlockByNumber', params: ['0x1', true] }));
  const codes = await Promise.all([ends, ...hangs]);
  const after = await codeOf(provider.request({ method: 'eth_chainId' }));
  provider.close();
  const beside = await other.request({ method: 'eth_blockNumber' });
  const again = await light.createProvider({ ...options, upstream: plain });
  const anew = await again.request({ method: 'eth_blockNumber' });
  for (const each of [other, again, chain]) each.close();
  return { codes, after, told, beside, anew };
}

/** Requests logs of an upstream that pads receipts with blanks, and of one that does not. Returns what both observe. */
export async function outgrown(light, dev) {
  const { chain, options } = await chainWithLogs(dev, 12);
  const plain = transportTo(chain);
  let grown = false;
  const asked = { padding: 0, honest: 0 };
  const isReceipt = (body) => grown && body.includes('eth_getTransactionReceipt');
  const padding = async (body) => {
    const bytes = await plain(body);
    if (!isReceipt(body)) return bytes;
    asked.padding += 1;
    const all = new Uint8Array(bytes.length + 30 * MIB).fill(32);
    all.set(bytes);
    return all;
  };
  const honest = async (body) => {
    asked.honest += Number(isReceipt(body));
    return plain(body);
  };
  const provider = await light.createProvider({ ...options, upstreams: [padding, honest], batch: 1 });
  grown = true;
  const logs = await provider.request({ method: 'eth_getLogs', params: [{ fromBlock: '0x0', toBlock: 'latest' }] });
  const [{ demerits }, { demerits: none }] = await provider.request({ method: 'rootlight_upstreams' });
  for (const each of [provider, chain]) each.close();
  return { found: logs.length, asked, demerits, none };
}

/**
 * Sends a request alone and twenty at once with an upstream that pads its responses as far as they are read. Returns their outcomes and
 * the state after them.
 */
export async function flooded(light, dev) {
  const blocks = 26;
  const { chain, options } = await chainWithLogs(dev, blocks);
  const plain = transportTo(chain);
  // Only receipts are padded; headers and bodies are not.
  const large = padded(plain, 10 * MIB);
  let grown = false;
  const upstream = (body) => (grown && body.includes('eth_getTransactionReceipt') ? large : plain)(body);
  const provider = await light.createProvider({ ...options, upstream, batch: 1 });
  const logs = () => provider.request({ method: 'eth_getLogs', params: [{ fromBlock: '0x0', toBlock: 'latest' }] });
  grown = true;
  const alone = await codeOf(logs());
  await chain.request({ method: 'evm_mine' });
  const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(logs())));
  grown = false;
  const found = (await logs()).length;
  for (const each of [provider, chain]) each.close();
  return { alone, codes, found };
}
