// The gaps of a page's thread in headless Chromium while a client synchronizes and answers, in a worker and on that thread, and the time
// from the start of the page to the first proven answer with stored headers. With the folder of the built page (www/), its gaps too.
//
//   [CHROMIUM=..] [ROOTLIGHT_HEADERS=..] [PAGE_DIST=..] node gaps.mjs
import { serveChain } from '../../pkg/test/lib/chain-server.mjs';
import { HeaderNode, readHeaders } from '../../pkg/test/lib/headers.mjs';
import { openPage } from '../../pkg/test/lib/in-page.mjs';
import { serveNode } from '../../pkg/test/lib/upstream.mjs';

const ROUNDS = 7;
/** Milliseconds for which a new window of the browser is left alone. */
const SETTLES = 2_000;
/** Blocks of the chain whose state is asked for. */
const BLOCKS = 1_200;

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/**
 * Runs in the page: does some work beside a probe that takes a turn each millisecond, and returns the longest pause between two turns and
 * the time of the work, in milliseconds. Nothing else can run on the thread during a pause. Between its turns the thread is idle: one that is
 * always busy waits behind other threads for its processor, and the probe would measure its own load.
 */
async function probed(options, questions) {
  const { createProvider, load } = await import('/index.js');
  if (options?.worker === false) await load();
  const gaps = [];
  let last = performance.now();
  let over = false;
  const turn = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    if (!over) scheduler.postTask(turn, { delay: 1, priority: 'user-blocking' });
  };
  turn();
  const began = performance.now();
  if (options) {
    const provider = await createProvider(options);
    for (const question of questions) await provider.request(question);
    provider.close();
  } else {
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  const time = performance.now() - began;
  over = true;
  await new Promise((resolve) => setTimeout(resolve, 20));
  gaps.sort((a, b) => b - a);
  return { longest: gaps[0], time, above: gaps.filter((gap) => gap > 16).length };
}

/** Runs in the page: the milliseconds from the start of the page to the first proven answer, and how many blocks the chain has. */
async function first(options) {
  const { createProvider } = await import('/index.js');
  const provider = await createProvider(options);
  const balance = await provider.request({ method: 'eth_getBalance', params: [`0x${'11'.repeat(20)}`, 'latest'] });
  const time = performance.now();
  const head = Number(await provider.request({ method: 'eth_blockNumber' }));
  // The client stores its last headers within this time, before the page is closed.
  await new Promise((resolve) => setTimeout(resolve, 500));
  provider.close();
  return { time, head, balance };
}

async function gaps(page, name, options, questions) {
  const seen = { longest: [], time: [], above: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    await page.reload();
    const one = await page.run(probed, options, questions);
    for (const [key, value] of Object.entries(one)) seen[key].push(value);
  }
  const [longest, most] = [median(seen.longest), Math.max(...seen.longest)];
  console.log(`${name}: longest gap ${longest.toFixed(1)} ms (at most ${most.toFixed(1)}), ${median(seen.above)} above 16 ms, in ${median(seen.time).toFixed(0)} ms of work`);
}

/**
 * Starts the same probe before the scripts of a page, until the first proof is drawn. The page itself says then that it is over, so that
 * nothing that waits for it from outside runs on its thread.
 */
function probe() {
  globalThis.gaps = [];
  globalThis.started = false;
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    globalThis.gaps.push(now - last);
    last = now;
    if (!globalThis.started && document.querySelector('.drawing .verdict')) {
      globalThis.started = true;
      globalThis.start = globalThis.gaps.splice(0);
      console.info('started');
    }
    scheduler.postTask(turn, { delay: 1, priority: 'user-blocking' });
  };
  turn();
}

/** Runs in the built page: the longest gaps of its start, or of the next second. */
async function longest(again) {
  if (again) {
    globalThis.gaps.length = 0;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  // `Math.max(...gaps)` fails: there are more gaps than a call can take arguments.
  return (again ? globalThis.gaps : globalThis.start).reduce((most, gap) => Math.max(most, gap), 0);
}

/** The gaps of the built page: while it starts with a development chain behind it and shows the first proofs, and while blocks are mined. */
async function builtPage() {
  const [{ startBrowser }, { call, startSite }] = await Promise.all(['browser', 'site'].map((name) => import(`../../www/test/lib/${name}.mjs`)));
  const [site, browser] = [await startSite('dev'), await startBrowser()];
  await call(site.node, 'hardhat_mine', '0x5');
  const seen = { start: [], mining: [], idle: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.addInitScript(probe);
    // A new window loads pages of the browser's own first, on the same processors.
    await page.waitForTimeout(SETTLES);
    const started = page.waitForEvent('console', (line) => line.text() === 'started');
    await page.goto(`${site.url}/`, { waitUntil: 'commit' });
    await started;
    seen.start.push(await page.evaluate(longest, false));
    const mine = page.getByRole('button', { name: 'Mine a block' }).first();
    const over = page.evaluate(longest, true);
    for (let block = 0; block < 5; block += 1) await mine.click();
    seen.mining.push(await over);
    seen.idle.push(await page.evaluate(longest, true));
    await context.close();
  }
  for (const [name, list] of Object.entries(seen)) console.log(`the built page, ${name}: longest gap ${median(list).toFixed(1)} ms (at most ${Math.max(...list).toFixed(1)})`);
  await browser.close();
  await site.stop();
}

if (process.env.PAGE_DIST) await builtPage();
const chain = await serveChain(BLOCKS);
const page = await openPage();
try {
  const state = { ...chain.options, storage: null, pollSeconds: 3_600 };
  const at = (number) => ({ method: 'eth_getBalance', params: [`0x${number.toString(16).padStart(40, '0')}`, 'latest'] });
  const questions = Array.from({ length: 100 }, (_, number) => at(number + 1));
  await gaps(page, 'no client', null, []);
  await gaps(page, `${BLOCKS} blocks as objects and 100 balances, in a worker`, state, questions);
  await gaps(page, 'the same on the page\'s thread', { ...state, worker: false }, questions);
  if (process.env.ROOTLIGHT_HEADERS) {
    const headers = readHeaders(process.env.ROOTLIGHT_HEADERS);
    const node = await serveNode(new HeaderNode(headers, 'binary'));
    const [{ number, hash }] = headers;
    const main = { network: 'mainnet', checkpoint: { number, hash }, upstreams: node.url, maxAge: 0, storage: null, pollSeconds: 3_600 };
    const head = [{ method: 'eth_blockNumber', params: [] }];
    await gaps(page, `${headers.length - 1} main network headers, in a worker`, main, head);
    await gaps(page, 'the same on the page\'s thread', { ...main, worker: false }, head);
    await node.close();
  }
  const warm = { ...chain.options, pollSeconds: 3_600 };
  const times = { cold: [], warm: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    await page.reload();
    const { time, head } = await page.run(first, warm);
    if (head !== BLOCKS) throw new Error(`ended at block ${head}`);
    times[round === 0 ? 'cold' : 'warm'].push(time);
  }
  const shown = `${median(times.warm).toFixed(0)} ms (at most ${Math.max(...times.warm).toFixed(0)})`;
  console.log(`from the start of a page to the first proven balance, ${BLOCKS} stored headers: ${shown}; without stored headers ${times.cold[0].toFixed(0)} ms`);
} finally {
  await page.close();
  await chain.close();
}
