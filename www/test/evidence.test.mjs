// What the page says a block rests on: where the chain starts, and what Bitcoin's chain shows above the block.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSources } from './lib/source.mjs';

let sources;
let words;
before(async () => {
  sources = await openSources();
  words = await sources.load('views/evidence.ts');
});
after(() => sources.close());

const TAGS = { own: 18, kin: 17, foreign: 0, ahead: 0, none: 37, withheld: 0 };
const HELD = { verdict: 'held', reason: null, blocksAbove: 3, newestHeight: 900_000, newestAge: 22 * 60, tags: TAGS };

test('Bitcoin blocks above a block, the age of the newest, and the tags of the newest 72 are said in a line each', () => {
  assert.deepEqual(words.bitcoinWords(HELD), [
    '3 Bitcoin blocks commit to this block or to one above it, the newest 22 min ago.',
    'The newest 72 Bitcoin blocks name: 18 this chain, 17 hidden blocks of it, 37 none.',
  ]);
  assert.match(words.bitcoinWords({ ...HELD, blocksAbove: 1 })[0], /^1 Bitcoin block commits to /);
  assert.match(words.bitcoinWords({ ...HELD, blocksAbove: 0, newestAge: null })[0], /^No Bitcoin block commits .* yet\.$/);
});

test('what Bitcoin does not confirm is said with the reason, and so is a missing Bitcoin chain', () => {
  const tags = { own: 1, kin: 0, foreign: 30, ahead: 2, none: 30, withheld: 9 };
  const [, names, verdict] = words.bitcoinWords({ ...HELD, verdict: 'contested', reason: 'it left between 5 and 9', tags });
  assert.equal(names, 'The newest 72 Bitcoin blocks name: 1 this chain, 30 another chain, 2 later blocks, 30 none, 9 not shown.');
  assert.equal(verdict, 'Bitcoin’s support of this chain is contested: it left between 5 and 9.');
  assert.deepEqual(words.bitcoinWords(null), ['Bitcoin’s blocks were not looked at: they could tell when the work was done.']);
  const nothing = { own: 0, kin: 0, foreign: 0, ahead: 0, none: 0, withheld: 0 };
  assert.equal(words.bitcoinWords({ ...HELD, verdict: 'unavailable', blocksAbove: 0, newestAge: null, tags: nothing }).length, 2);
});

test('a start says what is trusted, and since when work counts', () => {
  const time = Date.now() / 1_000 - 2 * 86_400 - 60;
  assert.equal(words.startWords({ kind: 'window', number: 9_434_690, time }), 'No block is trusted: the chain starts by window, and the work since block 9,434,690 (2 days ago) counts.');
  assert.equal(words.startWords({ kind: 'checkpoint', number: 0, time: 0 }), 'Everything since the first block was checked here; that block is trusted.');
  assert.match(words.startWords({ kind: 'upstream', number: 0, time: 0 }), /^Everything since the first block was checked here; that block is trusted as the node shows it/);
});
