// The first screen of the built page (www/) in headless Chromium: when a visitor can press its button and search, when its newest block is
// proven, and the longest gaps of the page's thread until then. On loopback, and over a slow line with a slow processor. With TRACE=1 each
// load is traced, and its longest tasks are told; the trace takes time of its own, so that the other numbers are larger then.
//
//   [CHROMIUM=..] [ROUNDS=..] [LINE=loopback] [TRACE=1] PAGE_DIST=.. ROOTLIGHT=.. node first-screen.mjs
import { createServer, connect } from 'node:net';
import { startBrowser } from '../../www/test/lib/browser.mjs';
import { call, startSite } from '../../www/test/lib/site.mjs';
import { traced } from './tasks.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 7);
/** Milliseconds for which a new window of the browser is left alone: it loads pages of the browser's own first. */
const SETTLES = 2_000;
/** Blocks of the chain. */
const BLOCKS = 100;
/** Lines: milliseconds of a round trip, bytes per second towards the page, and how many times slower the page's thread is. */
const LINES = {
  loopback: { roundTrip: 0, rate: Infinity, slower: 1 },
  'at 180 kB/s, 300 ms and a quarter of the processor': { roundTrip: 300, rate: 180_000, slower: 4 },
};

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/**
 * A line of this kind in front of a server: each connection takes a round trip, each piece half of one, and all that goes to the page
 * shares the rate.
 */
async function line(port, { roundTrip, rate }) {
  let free = 0;
  const server = createServer(async (near) => {
    const far = connect(port, '127.0.0.1');
    const carry = (from, to, arrival) => {
      let last = Promise.resolve();
      const after = (work) => { last = last.then(work).catch(() => {}); };
      from.on('data', (piece) => {
        const due = arrival(piece.length);
        after(async () => {
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
          to.write(piece);
        });
      });
      from.on('end', () => after(() => to.end()));
      from.on('error', () => to.destroy());
    };
    let opened = performance.now() + roundTrip;
    carry(near, far, () => (opened = Math.max(opened, performance.now())) + roundTrip / 2);
    carry(far, near, (bytes) => {
      free = Math.max(free, performance.now()) + (1_000 * bytes) / rate;
      return free + roundTrip / 2;
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

/** Milliseconds between two turns of the probe that count as a gap of the page's thread: a frame. */
const GAP = 16;

/**
 * Runs before the scripts of the page: notes when something is drawn, when the first screen can be used, when its chain is proven and when
 * all sections are there, and the gaps until then.
 */
function probe(gap) {
  // A turn each millisecond leaves the thread idle between: one that is always busy waits behind other threads for its processor.
  const next = (turn) => scheduler.postTask(turn, { delay: 1, priority: 'user-blocking' });
  const noted = { drawn: 0, interactive: 0, proven: 0, whole: 0, longest: 0, gaps: [] };
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    noted.longest = Math.max(noted.longest, now - last);
    if (now - last > gap) noted.gaps.push(`${Math.round(now - last)} ms at ${Math.round(last)}`);
    last = now;
    noted.interactive ||= document.querySelector('#make-lie') && document.querySelector('#search form') ? now : 0;
    noted.proven ||= document.querySelector('#status #head') ? now : 0;
    noted.whole ||= document.documentElement?.dataset.ready && document.querySelector('.drawing .verdict') ? now : 0;
    if (!noted.proven || !noted.whole) return next(turn);
    noted.drawn = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? now;
    return console.info(`noted ${JSON.stringify(noted)}`);
  };
  next(turn);
}

async function load(browser, url, slower) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.waitForTimeout(SETTLES);
  await page.addInitScript(probe, GAP);
  if (slower > 1) await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: slower });
  const visit = async () => {
    const noted = page.waitForEvent('console', { predicate: (message) => message.text().startsWith('noted '), timeout: 120_000 });
    await page.goto(`${url}/`, { waitUntil: 'commit' });
    return JSON.parse((await noted).text().slice(6));
  };
  const { value, tasks } = process.env.TRACE ? await traced(browser, page, visit) : { value: await visit(), tasks: [] };
  await context.close();
  return { ...value, tasks };
}

/** Tells the medians of the loads, and the longest tasks if they were traced. */
function report(name, loads) {
  const middle = (what) => Math.round(median(loads.map((each) => each[what])));
  const most = Math.max(...loads.map(({ longest }) => longest));
  console.log(`${name}: first paint ${middle('drawn')} ms, interactive after ${middle('interactive')} ms, newest block proven after ${middle('proven')} ms, all sections after ${middle('whole')} ms, longest gap ${middle('longest')} ms (at most ${Math.round(most)})`);
  for (const { gaps, tasks } of loads) {
    console.log(`  gaps above ${GAP} ms: ${gaps.join(', ') || 'none'}`);
    for (const { processor, wall, since, words } of tasks) console.log(`    task of ${processor.toFixed(1)} ms of processor time, ${wall.toFixed(1)} ms in all, at ${Math.round(since)}: ${words}`);
  }
}

const [site, browser] = [await startSite('dev'), await startBrowser()];
await call(site.node, 'hardhat_mine', `0x${BLOCKS.toString(16)}`);
try {
  for (const [name, kind] of Object.entries(LINES).filter(([name]) => name.startsWith(process.env.LINE ?? ''))) {
    const way = await line(new URL(site.url).port, kind);
    const loads = [];
    for (let round = 0; round < ROUNDS; round += 1) loads.push(await load(browser, way.url, kind.slower));
    report(name, loads);
    way.stop();
  }
} finally {
  await browser.close();
  await site.stop();
}
