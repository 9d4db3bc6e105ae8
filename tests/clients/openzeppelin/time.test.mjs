// OpenZeppelin's test helpers on the development chain: time and blocks.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { call, MNEMONIC, startChain } from '../chain.mjs';

const require = createRequire(import.meta.url);
let chain, time;

before(async () => {
  chain = await startChain('--mnemonic', MNEMONIC);
  require('@openzeppelin/test-helpers/configure')({ provider: chain.url, singletons: { abstraction: 'web3' } });
  ({ time } = require('@openzeppelin/test-helpers'));
});

after(() => chain?.stop());

const latest = async () => (await time.latest()).toNumber();

test('time increases by what is asked, also on a chain that is ahead of the clock', async () => {
  for (const ahead of ['0x1', '0x3e8']) {
    await call(chain.url, 'hardhat_mine', ahead);
    for (const duration of [time.duration.seconds(61), time.duration.days(2)]) {
      const start = await latest();
      await time.increase(duration);
      const moved = (await latest()) - start;
      assert.ok(moved >= duration.toNumber() && moved < duration.toNumber() + 30, `${moved} for ${duration}`);
    }
    const target = (await latest()) + 3_600;
    await time.increaseTo(target);
    assert.ok((await latest()) >= target && (await latest()) < target + 30);
  }
});

test('blocks advance', async () => {
  const height = (await time.latestBlock()).toNumber();
  await time.advanceBlock();
  await time.advanceBlockTo(height + 5);
  assert.equal((await time.latestBlock()).toNumber(), height + 5);
});
