// A cold start of the browser package in headless Chromium, by work alone and from a checkpoint 440,000 blocks below the
// head: time to the first proven answer, bytes received, memory of the WebAssembly module, of JavaScript and of the
// page's process, and the size of the IndexedDB database.
//
// The module is the one for tests, which accepts a network as an object: the chain is mined for this measurement at a low difficulty.
//
//   COLD_START=target/release/examples/cold_start [CHROMIUM=..] node cold.mjs [HEADERS]
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { startBrowser } from '../../pkg/test/lib/browser.mjs';
import { servePackage } from '../../pkg/test/lib/pages.mjs';

/** Milliseconds between two polls of the page. */
const POLL = 1_000;

/** Longest cold start in milliseconds. */
const PATIENCE = 1_800_000;

/** Longest wait, in milliseconds, until all headers are in the database. */
const WRITING = 60_000;

const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

/** Starts the upstream; returns the description of its chain, its counters and a function that ends it. */
async function startUpstream(headers) {
  const child = spawn(process.env.COLD_START, ['--serve', ...headers], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{')) continue;
    const chain = JSON.parse(line);
    const figures = async () => (await fetch(chain.upstream, { method: 'POST', body: '{"method":"cold_figures"}' })).json();
    return { chain, figures, close: () => child.stdin.end() };
  }
  throw new Error('the upstream has ended');
}

/** Clock ticks of /proc per second. */
const TICKS = 100;

/** A process's parent, type, peak of resident memory in bytes and processor seconds, from /proc; `undefined` if it has ended. */
function statusOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
    const type = /--type=([a-z-]+)/.exec(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))?.[1];
    // Fields 14 and 15 of the line; the second one, in brackets, may contain spaces.
    const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ').slice(11, 13);
    return { parent: field('PPid'), peak: field('VmHWM') * 1_024, seconds: (Number(user) + Number(system)) / TICKS, type };
  } catch {
    return undefined;
  }
}

/** Of the processes of this browser that run pages, the one with the highest peak of resident memory. */
function pageProcess() {
  const processes = new Map(readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map((pid) => [Number(pid), statusOf(pid)]));
  const isOurs = (pid) => pid === process.pid || (processes.get(pid) !== undefined && isOurs(processes.get(pid).parent));
  const pages = [...processes].filter(([pid, status]) => status?.type === 'renderer' && isOurs(pid));
  return pages.map(([, status]) => status).reduce((most, status) => (status.peak > most.peak ? status : most));
}

/**
 * Runs in the page: starts a provider and records memory every 100 ms in `globalThis.cold`. The clock is set to the time
 * of the newest block, because the chain may have been mined days ago.
 */
async function begin(options, time) {
  const ahead = time * 1_000 - Date.now();
  const { now } = Date;
  Date.now = () => now.call(Date) + ahead;
  const memories = [];
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...given) => {
    const made = await instantiate(...given);
    memories.push((made.instance ?? made).exports.memory);
    return made;
  };
  const seen = { wasm: 0, heap: 0 };
  const look = () => {
    seen.wasm = Math.max(seen.wasm, ...memories.map(({ buffer }) => buffer.byteLength));
    seen.heap = Math.max(seen.heap, performance.memory?.usedJSHeapSize ?? 0);
  };
  setInterval(look, 100);
  globalThis.cold = seen;
  const { createProvider, load } = await import('/test/lib/any-network.mjs');
  await load();
  const began = performance.now();
  const work = async () => {
    const provider = await createProvider({ ...options, maxAge: 0, onProgress: ({ currentBlock }) => (seen.block = currentBlock) });
    const { result, start } = await provider.requestWithLevel({ method: 'eth_blockNumber' });
    look();
    Object.assign(seen, { head: Number(result), start, seconds: (performance.now() - began) / 1_000 });
  };
  work().catch(({ message }) => Object.assign(seen, { failed: message }));
}

/** Polls the page until `isDone` holds for what {@link begin} has recorded. */
async function waitFor(browser, patience, isDone) {
  for (const end = Date.now() + patience; ; ) {
    await new Promise((resolve) => setTimeout(resolve, POLL));
    const seen = await browser.run(async () => globalThis.cold);
    if (seen.failed) throw new Error(seen.failed);
    if (isDone(seen)) return seen;
    if (Date.now() > end) throw new Error(`no answer in time; verified up to block ${seen.block}`);
  }
}

/** The bytes that the site stores, once they no longer grow. */
async function stored(browser) {
  let before = -1;
  for (const end = Date.now() + WRITING; Date.now() < end; ) {
    const bytes = await browser.run(async () => (await navigator.storage.estimate()).usage);
    if (bytes === before) return bytes;
    before = bytes;
    await new Promise((resolve) => setTimeout(resolve, 3 * POLL));
  }
  throw new Error('the database keeps growing');
}

async function measure(name, { chain, figures }, more) {
  const site = await servePackage();
  const browser = await startBrowser();
  const before = await figures();
  try {
    await browser.open(`${site.url}/test/page.html`);
    await browser.run(begin, { network: chain.network, upstreams: chain.upstream, ...more }, chain.time);
    const seen = await waitFor(browser, PATIENCE, ({ seconds }) => seconds !== undefined);
    if (seen.head !== chain.head) throw new Error(`ended at block ${seen.head} instead of ${chain.head}`);
    const after = await figures();
    const [blocks, bytes] = [after.headers - before.headers, after.bytes - before.bytes];
    const page = pageProcess();
    console.log(
      `${name}: ${seen.seconds.toFixed(1)} s, processor time of the page's process ${page.seconds.toFixed(1)} s, ${blocks} blocks, ${bytes} bytes received, ${(bytes / blocks).toFixed(0)} per block; ` +
        `memory at most: module ${mib(seen.wasm)}, JavaScript ${mib(seen.heap)}, process ${mib(page.peak)}; stored ${mib(await stored(browser))}`,
    );
  } finally {
    await browser.close();
    await site.close();
  }
}

const upstream = await startUpstream(process.argv.slice(2));
try {
  const { checkpoint } = upstream.chain;
  await measure('by work', upstream, { checkpoint: 'work' });
  await measure('from the checkpoint', upstream, { checkpoint });
  await measure('from the checkpoint without a store', upstream, { checkpoint, store: null });
} finally {
  upstream.close();
}
