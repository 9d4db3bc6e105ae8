// A start by proof of work alone, and starts that are refused, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inPage } from './lib/in-page.mjs';
import { LIMIT } from './lib/wait.mjs';
import { BLOCKS, byWork, HEADERS, refusals, withStore } from './lib/work-scenario.mjs';

const hexadecimal = (number) => `0x${number.toString(16)}`;

/** In Node.js with the modules of this process. */
const inNode = async (scenario) => scenario(await import('./lib/any-network.mjs'), await import('../dev.js'), await import('../index.js'));

/** In a page, by the scenario's name. */
const onPage = (run, name) =>
  run(async (scenario) => {
    const modules = [await import('/test/lib/any-network.mjs'), await import('/dev.js'), await import('/index.js')];
    return (await import('/test/lib/work-scenario.mjs'))[scenario](...modules);
  }, name);

function checkStart({ progress, height, chainId, status, proofs, event }) {
  assert.deepEqual(height, { result: hexadecimal(BLOCKS), start: 'work' });
  assert.deepEqual(chainId, { result: '0x21' }, 'an answer that needs no block does not contain the start');
  assert.equal(status.result.start, 'work');
  assert.equal(status.result.synced, true);
  assert.equal(Number(status.result.attackCost), HEADERS);
  // The block itself adds no work: nothing proves its difficulty.
  assert.deepEqual(proofs.map(({ result }) => Number(result.attackCost)), [1, 10, HEADERS]);
  assert.deepEqual(proofs.map(({ result }) => result.origin), ['mined', 'mined', 'work']);
  for (const { result, start } of proofs) assert.deepEqual([result.start, start], ['work', 'work']);
  const last = progress.at(-1);
  assert.deepEqual([last.startingBlock, last.currentBlock, last.highestBlock], [BLOCKS - HEADERS, BLOCKS, BLOCKS]);
  assert.deepEqual([event.start, event.number], ['work', hexadecimal(BLOCKS + 1)]);
}

function checkRefusals(said) {
  assert.match(said.testnet, /^checkpoint: testnet: no start by work alone: .*nearly free.*give a checkpoint/);
  assert.match(said.regtest, /^checkpoint: regtest: no start by work alone: its blocks may have any time/);
  assert.equal(said.window, said.testnet);
  assert.equal(said.floorOfWindow, said.floor);
  assert.match(said.floor, /without a trusted block needs a floor of work: minWork above 0/);
  assert.match(said.form, /^checkpoint: .*: give \{number, hash\}, 'window', 'built-in' or 'work'$/);
  assert.match(said.file, /^network: .*rules: unknown name rskip1/);
  assert.equal(said.besideAChain, said.testnet);
  assert.match(said.object, /^network: give a name/);
  assert.match(said.age, /newest built-in checkpoint of mainnet, block \d+, is \d+ days old, at most 365 are accepted: update Rootlight, or give a newer checkpoint, NUMBER:HASH/);
  assert.equal(said.ageWithoutFloor, said.age);
  assert.match(said.ageOnTestnet, /newest built-in checkpoint of testnet.*update Rootlight, or give a newer checkpoint,/);
  assert.match(said.light, /has difficulty 1; at least 100 is required/);
  assert.match(said.floorOfWork, /show \d % of the expected work/);
  assert.match(said.short, new RegExp(`ends at block ${BLOCKS}; a start needs ${BLOCKS + 1} headers above block 0`));
  assert.match(said.old, /its newest block \d+ is \d+ s old/);
  assert.match(said.beyond, /update needed/);
  assert.match(said.beyondACheckpoint, /update needed/);
}

test('a client that trusts no block starts by work and marks every answer', LIMIT, async () => {
  checkStart(await inNode(byWork));
});

test('a client starts by work in a page', LIMIT, async () => {
  await inPage(async (run) => {
    checkStart(await onPage(run, 'byWork'));
    assert.deepEqual(await onPage(run, 'withStore'), { touched: [], databases: [] });
  });
});

test('a start by work neither reads nor writes stored headers', LIMIT, async () => {
  assert.deepEqual(await inNode(withStore), { touched: [], databases: [] });
});

test('starts that prove nothing, and chains that do not prove enough, are refused with the reason', LIMIT, async () => {
  checkRefusals(await inNode(refusals));
});

test('starts that prove nothing, and chains that do not prove enough, are refused in a page', LIMIT, async () => {
  checkRefusals(await inPage((run) => onPage(run, 'refusals')));
});
