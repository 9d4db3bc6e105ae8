// Starts by window beside a Rootlight that lies, stalls or sends any bytes, in Node.js and in a page: an honest upstream is enough. And what a damaged
// store changes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MODES, serveHostile } from './lib/hostile-window.mjs';
import { inPage } from './lib/in-page.mjs';
import { MinedBitcoin } from './lib/mined-bitcoin.mjs';
import { DATED_NETWORK } from './lib/mined-chain.mjs';
import { keepRunning } from './lib/running.mjs';
import { LIMIT } from './lib/wait.mjs';
import { supported } from './lib/window-scenario.mjs';
import { serveWindow } from './lib/window-node.mjs';

/** Headers of the chain: more than those of a window that Bitcoin's chain dates. */
const LENGTH = 2_400;

/** Blocks of a lighter Bitcoin chain that the honest node does not have. */
const OTHER_BLOCKS = 3_900;

let honest;
let hostile;
before(async () => {
  honest = await serveWindow(LENGTH, true);
  hostile = await serveHostile(honest.url, new MinedBitcoin(OTHER_BLOCKS, Math.floor(Date.now() / 1_000)));
});
after(async () => {
  await hostile.close();
  await honest.close();
});

/** Both upstreams, with the hostile one first. */
const options = () => ({ network: DATED_NETWORK, upstreams: [hostile.url, honest.url], storage: null, pollSeconds: 1 });

/** Checks what {@link supported} has seen: the true balance, which Bitcoin supports in the end, and no blame for the honest upstream. */
function check(name, { balance, head, mark, lies }) {
  assert.deepEqual([name, balance, head, lies.at(-1)], [name, honest.balance, honest.head(), 0]);
  assert.ok(mark === undefined || ['weak', 'unavailable'].includes(mark), `${name}: ${mark}`);
}

for (const [name, mode] of Object.entries(MODES)) {
  test(`an honest upstream is enough beside one with ${name}`, LIMIT, async () => {
    hostile.become(mode);
    const module = await import('./lib/any-network.mjs');
    check(name, await keepRunning(() => supported(module, options(), honest.account)));
  });
}

test('an honest upstream is enough in a page', LIMIT, async () => {
  await inPage(async (run) => {
    const work = async (...given) => {
      const { supported } = await import('/test/lib/window-scenario.mjs');
      return supported(await import('/test/lib/any-network.mjs'), ...given);
    };
    for (const [name, mode] of Object.entries(MODES).filter((_, place) => place % 5 === 0)) {
      hostile.become(mode);
      check(name, await run(work, options(), honest.account));
    }
  });
});

/** Puts other values in the places of a store's database, and returns how many there were. `kind` names what they become. */
async function damage(kind) {
  const request = indexedDB.open((await indexedDB.databases())[0].name);
  const db = await new Promise((resolve, reject) => Object.assign(request, { onsuccess: () => resolve(request.result), onerror: reject }));
  const store = db.transaction('pages', 'readwrite').objectStore('pages');
  const all = (get) => new Promise((resolve) => (get.onsuccess = () => resolve(get.result)));
  const [keys, values] = await Promise.all([all(store.getAllKeys()), all(store.getAll())]);
  const [RECORD, BITCOIN] = [0, 129];
  const change = {
    texts: (_, value) => String(value.length),
    numbers: (key) => key,
    nothing: () => new Uint8Array(0),
    halves: (_, value) => value.slice(0, value.length / 2),
    // A record has no checksum: another mark refuses windows, and says so.
    bits: (key, value) => (key === RECORD ? value : value.map((byte, at) => (at === value.length - 9 ? byte ^ 1 : byte))),
    zeros: (_, value) => new Uint8Array(value.length),
    large: (key, value) => (key === RECORD ? value : new Uint8Array(2 ** 18)),
    'another end': (key, value) => (key === RECORD ? value.map((byte, at) => (at < 4 ? 255 : byte)) : value),
    'pages in the place of others': (key, value) => (key === RECORD || key === BITCOIN ? value : values[values.length - 1 - keys.indexOf(key)]),
    'Bitcoin in the place of the record': (key, value) => (key === RECORD ? values[keys.indexOf(BITCOIN)].slice(0, 1_000) : value),
    'the record in the place of Bitcoin': (key, value) => (key === BITCOIN ? values[keys.indexOf(RECORD)] : value),
  }[kind];
  keys.forEach((key, at) => store.put(change(key, values[at]), key));
  await new Promise((resolve) => (store.transaction.oncomplete = resolve));
  db.close();
  return keys.length;
}

const KINDS = [
  'texts', 'numbers', 'nothing', 'halves', 'bits', 'zeros', 'large', 'another end', 'pages in the place of others', 'Bitcoin in the place of the record',
  'the record in the place of Bitcoin',
];

test('a damaged database changes no answer, and is written anew', LIMIT, async () => {
  hostile.become(() => undefined);
  await inPage(async (run, _, tab) => {
    const work = async (...given) => {
      const { visit } = await import('/test/lib/window-scenario.mjs');
      return visit(await import('/test/lib/any-network.mjs'), await import('/store.js'), ...given);
    };
    const again = async (run, name) => {
      const { balance, head, error } = await run(work, { network: DATED_NETWORK, upstreams: honest.url }, honest.account);
      assert.deepEqual([name, error, balance?.result, head], [name, undefined, honest.balance, honest.head()]);
    };
    await again(run, 'the first visit');
    for (const kind of KINDS) {
      assert.ok((await run(damage, kind)) > 20, kind);
      await again(run, kind);
    }
    // Two tabs at once, one of which writes.
    await run(damage, 'bits');
    const other = await tab();
    await Promise.all([again(run, 'the first tab'), again(other, 'the second tab')]);
  });
});
