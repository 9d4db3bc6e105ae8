// Synchronizes 1,199 main network headers from a checkpoint to the first proven answer: natively, in Node.js
// and in headless Chromium, from the same upstream on loopback, in every form in which nodes return headers.
//
//   ROOTLIGHT=.. ROOTLIGHT_HEADERS=mainnet_4479841_iris_run1200.json [CHROMIUM=..] node engines.mjs
import { Node, median } from './node.mjs';
import { startBrowser } from '../../pkg/test/lib/browser.mjs';
import { follow } from '../../pkg/test/lib/headers-scenario.mjs';
import { HeaderNode, readHeaders } from '../../pkg/test/lib/headers.mjs';
import { servePackage } from '../../pkg/test/lib/pages.mjs';
import { serveNode } from '../../pkg/test/lib/upstream.mjs';

/** Rounds; the first warms up and does not count. */
const ROUNDS = 6;
const PORT = 14_471;

/** Caches responses, so that the upstream's work is not measured. */
class Remembered {
  #node;
  #answers = new Map();

  constructor(node) {
    this.#node = node;
  }

  ask(method, params) {
    const question = `${method} ${JSON.stringify(params)}`;
    if (!this.#answers.has(question)) this.#answers.set(question, this.#node.ask(method, params));
    return this.#answers.get(question);
  }
}

/** Measures from the start of the process. */
async function native({ network, checkpoint, upstreams }, last) {
  const flags = ['--network', network, '--checkpoint', `${checkpoint.number}:${checkpoint.hash}`, '--upstream', upstreams];
  const node = await Node.start([process.env.ROOTLIGHT, 'light', ...flags, '--http-port', `${PORT}`, '--silent'], PORT);
  try {
    const head = Number(await node.connection.call('eth_blockNumber'));
    if (head !== last) throw new Error(`native: ended at block ${head}`);
    return node.started;
  } finally {
    await node.stop();
  }
}

/** Measures with the module already loaded. */
async function inNode(options, last) {
  return ended(await follow(await import('../../pkg/index.js'), options, []), last);
}

function inPage(browser) {
  return async (options, last) => {
    const run = async (settings) => {
      const { follow } = await import('/test/lib/headers-scenario.mjs');
      return follow(await import('/index.js'), settings, []);
    };
    return ended(await browser.run(run, options), last);
  };
}

function ended({ head, milliseconds }, last) {
  if (head !== last) throw new Error(`ended at block ${head}`);
  return milliseconds;
}

async function measure(form, headers, engines) {
  const [{ number, hash }, last] = [headers[0], headers.at(-1).number];
  const upstream = await serveNode(new Remembered(new HeaderNode(headers, form)));
  const options = { network: 'mainnet', checkpoint: { number, hash }, upstreams: upstream.url, maxAge: 0 };
  const times = Object.fromEntries(Object.keys(engines).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, work] of Object.entries(engines)) {
      const time = await work(options, last);
      if (round > 0) times[name].push(time);
    }
  }
  await upstream.close();
  for (const [name, mine] of Object.entries(times)) {
    const ratios = mine.map((time, round) => time / times.native[round]);
    const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    const beside = name === 'native' ? '' : `; ${median(ratios).toFixed(2)} times native (${spread})`;
    console.log(`${form}, ${name}: ${headers.length - 1} headers in ${median(mine).toFixed(0)} ms${beside}`);
  }
}

const headers = readHeaders(process.env.ROOTLIGHT_HEADERS);
const site = await servePackage();
const browser = await startBrowser();
try {
  await browser.open(`${site.url}/test/page.html`);
  const engines = { native, 'Node.js': inNode, Chromium: inPage(browser) };
  for (const form of ['binary', 'json', 'raw']) await measure(form, headers, engines);
} finally {
  await browser.close();
  await site.close();
}
