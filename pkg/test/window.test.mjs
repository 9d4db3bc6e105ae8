// Starts by window, the default on mainnet, in Node.js and in a real page: what a visit receives before the first proven balance, what the next one
// asks for, and which windows it refuses.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { later } from './lib/clock.mjs';
import { inPage } from './lib/in-page.mjs';
import { MinedBitcoin } from './lib/mined-bitcoin.mjs';
import { DATED_NETWORK, FIRST, NETWORK, SPACING } from './lib/mined-chain.mjs';
import { keepRunning } from './lib/running.mjs';
import { LIMIT, until } from './lib/wait.mjs';
import { stored, visit } from './lib/window-scenario.mjs';
import { serveWindow } from './lib/window-node.mjs';

/** Headers of a window whose work nothing dates: those of two days, and the ancestors that their fork detection data commit to. */
const UNDATED = 5_760 + 449;

/** Blocks that are new at the second visit: those of an hour. */
const NEW = 120;

/** Headers of the chain. */
const LENGTH = UNDATED + NEW + 40;

/** Headers of a window that Bitcoin's chain dates, and the ancestors. */
const DATED = 1_440 + 449;

/** Most bytes before the first proven balance, of a window that Bitcoin's chain dates and of one that nothing dates. A header takes some 1,030. */
const MOST_BYTES = { dated: 4_000_000, undated: 6_800_000 };

/** Most bytes of a restart after an hour. */
const MOST_AGAIN = 300_000;

/** Where Bitcoin's chain is in a store. */
const BITCOIN = `rootlight-v1-${DATED_NETWORK.name}-window/129`;

/** Fewest bytes of a visit that receives Bitcoin's headers from their start. */
const BITCOIN_BYTES = 230_000;

/** Length of a Bitcoin chain that no upstream has. */
const OTHER_BLOCKS = 2_100;

let served;
let dated;
before(async () => {
  served = await serveWindow(LENGTH);
  dated = await serveWindow(LENGTH, true);
});
after(async () => {
  await served.close();
  await dated.close();
});

/** Three visits with one storage. `go(behind)` is a visit with the clock so many seconds behind. */
async function visits(t, where, go) {
  served.show(NEW);
  served.take();
  const cold = await go(NEW * SPACING);
  const first = served.take();
  t.diagnostic(`${where}: ${first.headers} headers, ${first.proven} bytes before the first proven balance`);
  assert.deepEqual(cold.balance, { result: served.balance, start: 'window' });
  assert.equal(cold.head, served.head(NEW));
  assert.deepEqual([cold.evidence.start, cold.evidence.bitcoin], ['window', null]);
  assert.equal(cold.start, cold.head - 5_760);
  assert.ok(first.headers < UNDATED + 40 && first.lowest >= FIRST, JSON.stringify(first));
  assert.ok(first.headers >= UNDATED && first.proven <= MOST_BYTES.undated, JSON.stringify(first));

  served.show(0);
  const warm = await go(0);
  const again = served.take();
  t.diagnostic(`${where}, an hour later: ${again.headers} headers, ${again.bytes} bytes`);
  assert.deepEqual(warm.balance, { result: served.balance, start: 'window' });
  assert.deepEqual([warm.head, warm.start], [served.head(), cold.start]);
  assert.ok(again.lowest >= cold.head - 1 && again.bytes <= MOST_AGAIN, JSON.stringify(again));

  // By the clock this window is as new as the first one was.
  served.show(NEW);
  assert.match((await go(NEW * SPACING)).error, /clock is 3\d{3} s behind the head that an earlier run proved/);
}

const options = (storage) => ({ network: NETWORK, upstreams: served.url, storage });

/** What the first visit received up to the first proven balance of a window that Bitcoin's chain dates. */
function checkDated(t, where, { balance, evidence }) {
  const { headers, lowest, proven, bitcoin } = dated.take();
  t.diagnostic(`${where}: ${proven} bytes before the first proven balance, ${bitcoin} of them about Bitcoin (window of ${DATED} headers, ${headers} in all)`);
  assert.deepEqual(balance, { result: dated.balance, start: 'window' });
  assert.ok(proven <= MOST_BYTES.dated && lowest >= FIRST, `${proven} bytes`);
  assert.equal(evidence.bitcoin.verdict, 'held', JSON.stringify(evidence.bitcoin));
  assert.equal(evidence.bitcoin.tags.own, 72, JSON.stringify(evidence.bitcoin));
}

/** Visits in this process. */
const inNode = async (storage) => {
  const modules = [await import('./lib/any-network.mjs'), await import('../store.js')];
  return (behind) => keepRunning(() => visit(...modules, options(storage), served.account, behind));
};

test('a window in a store of the caller', LIMIT, async (t) => {
  const kept = new Map();
  const sizes = [];
  const put = (key, value) => {
    sizes.push(value.length);
    kept.set(key, value);
  };
  await visits(t, 'Node.js', await inNode({ get: (key) => kept.get(key), put }));
  assert.ok(kept.size <= 129, `${kept.size} values`);
  assert.ok([...kept.keys()].every((key) => key.startsWith(`rootlight-v1-${NETWORK.name}-window/`)));

  // A damaged page is no reason to refuse: the pages below it are of use.
  for (const [key, value] of kept) if (value.length > 1_000 && key.endsWith('7')) kept.set(key, value.map((byte, at) => (at === 100 ? byte ^ 1 : byte)));
  served.show(0);
  const repaired = await (await inNode({ get: (key) => kept.get(key), put }))(0);
  assert.deepEqual([repaired.balance.start, repaired.head], ['window', served.head()]);
});

test('a window in a directory', LIMIT, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'rootlight-window-'));
  t.after(() => rm(folder, { recursive: true }));
  await visits(t, 'Node.js, directory', await inNode(folder));
});

test('a window without a store', LIMIT, async () => {
  served.show(0);
  const { balance, head } = await (await inNode(null))(0);
  assert.deepEqual([balance.start, head], ['window', served.head()]);
});

test('a window in IndexedDB, in a page', LIMIT, async (t) => {
  await inPage(async (run) => {
    const work = async (...given) => {
      const { visit } = await import('/test/lib/window-scenario.mjs');
      return visit(await import('/test/lib/any-network.mjs'), await import('/store.js'), ...given);
    };
    await visits(t, 'Chromium', (behind) => run(work, options(), served.account, behind));
    const names = await run(async () => (await indexedDB.databases()).map(({ name }) => name));
    assert.deepEqual(names, [`rootlight-v1-${NETWORK.name}-window`]);
  });
});

test('a window that Bitcoin dates', LIMIT, async (t) => {
  const [{ createProvider }, store] = [await import('./lib/any-network.mjs'), await import('../store.js')];
  const kept = new Map();
  /** How often Bitcoin's chain was written. */
  let written = 0;
  const put = (key, value) => {
    written += Number(key === BITCOIN);
    kept.set(key, value);
  };
  const storage = { get: (key) => kept.get(key), put };
  const go = (behind, work) => later(-behind, () => keepRunning(async () => {
    const provider = await createProvider({ network: DATED_NETWORK, upstreams: dated.url, storage, pollSeconds: 1 });
    const ask = (method, ...params) => provider.requestWithLevel({ method, params });
    const evidence = async (number) => (await ask('rootlight_verification', `0x${number.toString(16)}`)).result;
    const balance = await ask('eth_getBalance', dated.account, 'latest');
    return work({ balance, evidence, ask }).finally(() => provider.close());
  }));

  dated.show(NEW);
  dated.take();
  const head = dated.head(NEW);
  await go(NEW * SPACING, async ({ balance, evidence }) => {
    checkDated(t, 'Node.js', { balance, evidence: await evidence(head) });
    // The rest of two days follows.
    await until(() => evidence(head - 5_700).catch(() => false), 'the headers of two days');
    await stored(store, storage, DATED_NETWORK, head);
  });
  // The chain, and once more with its coinbases if these came later.
  assert.ok(written === 1 || written === 2, `written ${written} times`);

  /**
   * A visit an hour later, until Bitcoin supports the chain and another block has come, with which its chain is written if that is due. The chain
   * lacks as many blocks before. Returns what was received until Bitcoin supported the chain, and the first answer.
   */
  const again = async (missing) => {
    dated.show(missing);
    dated.take();
    let seen;
    await go(0, async ({ balance, evidence, ask }) => {
      assert.deepEqual([balance.result, balance.start], [dated.balance, 'window']);
      await until(async () => (await evidence(dated.head(missing))).bitcoin?.verdict === 'held', 'the evidence of Bitcoin');
      seen = { ...dated.take(), balance };
      dated.show(missing - 1);
      await until(async () => Number((await ask('eth_blockNumber')).result) === dated.head(missing - 1), 'the next block');
      assert.deepEqual((await ask('rootlight_upstreams')).result.map(({ lies }) => lies), [0]);
    });
    return seen;
  };

  const { bytes, lowest, balance } = await again(8);
  t.diagnostic(`an hour later: ${bytes} bytes`);
  assert.ok(bytes <= MOST_AGAIN && lowest >= head - 1, `${bytes} bytes from ${lowest}`);
  assert.deepEqual(balance, { result: dated.balance, start: 'window' }, 'the first answer has no mark: Bitcoin supports it');

  // What is damaged, no bytes, or the chain of others is no reason to refuse or to blame an upstream. It is fetched anew and replaced. The few
  // blocks of the visit before were not worth writing.
  const good = kept.get(BITCOIN);
  const other = new MinedBitcoin(OTHER_BLOCKS, Math.floor(Date.now() / 1_000)).stored();
  const wrong = [good.map((byte, at) => (at === good.length - 999 ? byte ^ 1 : byte)), 'no bytes', other];
  for (const [place, value] of wrong.entries()) {
    kept.set(BITCOIN, value);
    const anew = await again(6 - 2 * place);
    assert.ok(anew.bytes > BITCOIN_BYTES, `${place}: ${anew.bytes} bytes`);
    await until(() => kept.get(BITCOIN) !== value && kept.get(BITCOIN).length > good.length, 'the chain in its place');
  }
});

test('a window that Bitcoin dates, in a page', LIMIT, async (t) => {
  await inPage(async (run) => {
    const work = async (...given) => {
      const { visit } = await import('/test/lib/window-scenario.mjs');
      return visit(await import('/test/lib/any-network.mjs'), await import('/store.js'), ...given);
    };
    const go = (behind) => run(work, { network: DATED_NETWORK, upstreams: dated.url }, dated.account, behind);
    dated.show(NEW);
    dated.take();
    checkDated(t, 'Chromium', await go(NEW * SPACING));

    dated.show(0);
    dated.take();
    const { balance, evidence } = await go(0);
    const { proven, bitcoin } = dated.take();
    t.diagnostic(`Chromium, an hour later: ${proven} bytes before the first proven balance, ${bitcoin} of them about Bitcoin`);
    assert.ok(proven <= MOST_AGAIN, `${proven} bytes`);
    assert.deepEqual([balance, evidence.bitcoin.verdict], [{ result: dated.balance, start: 'window' }, 'held']);
  });
});
