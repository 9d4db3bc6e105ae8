// Every function of hardhat's network helpers. One that a later version adds fails here until it has a line of its own.
const helpers = require('@nomicfoundation/hardhat-network-helpers');
const { expect } = require('chai');
const { ethers, network } = require('hardhat');

const { time } = helpers;
const other = '0x00000000000000000000000000000000000000bb';
const word = (number) => ethers.toBeHex(number, 32);
const ownNetwork = network.name === 'hardhat';

/** What Rootstock cannot have is refused with what to do. */
const refused = (action, hint) => expect(action).to.be.rejectedWith(hint);

const shown = {
  async clearSnapshots() {
    await helpers.clearSnapshots();
  },
  async dropTransaction() {
    expect(await helpers.dropTransaction(word(7))).to.equal(false);
  },
  async getStorageAt() {
    expect(await helpers.getStorageAt(other, 5)).to.equal(word(0));
  },
  async impersonateAccount() {
    await helpers.impersonateAccount(other);
    await helpers.setBalance(other, 10n ** 18n);
    await (await ethers.getSigner(other)).sendTransaction({ to: other, gasPrice: 10n ** 9n });
  },
  async stopImpersonatingAccount() {
    await helpers.stopImpersonatingAccount(other);
  },
  async loadFixture() {
    const height = async () => helpers.mine() && time.latestBlock();
    expect(await helpers.loadFixture(height)).to.equal(await helpers.loadFixture(height));
  },
  async mine() {
    const height = await time.latestBlock();
    await helpers.mine(4, { interval: 15 });
    expect(await time.latestBlock()).to.equal(height + 4);
  },
  async mineUpTo() {
    const height = (await time.latestBlock()) + 6;
    await helpers.mineUpTo(height);
    expect(await time.latestBlock()).to.equal(height);
  },
  async reset() {
    await helpers.mine();
    const height = await time.latestBlock();
    await helpers.reset();
    expect(await time.latestBlock()).to.be.lessThan(height);
  },
  async setBalance() {
    await helpers.setBalance(other, 77n);
    expect(await ethers.provider.getBalance(other)).to.equal(77n);
  },
  async setBlockGasLimit() {
    // Hardhat's own network gives each later transaction 16,777,216 gas.
    await helpers.setBlockGasLimit(20_000_000);
  },
  async setCode() {
    await helpers.setCode(other, '0x00');
    expect(await ethers.provider.getCode(other)).to.equal('0x00');
  },
  async setCoinbase() {
    await helpers.setCoinbase(other);
    await helpers.mine();
    expect((await ethers.provider.send('eth_getBlockByNumber', ['latest', false])).miner).to.equal(other);
  },
  async setNextBlockBaseFeePerGas() {
    const set = helpers.setNextBlockBaseFeePerGas(10n ** 9n);
    await (ownNetwork ? set : refused(set, 'Rootstock has no base fee'));
  },
  async setNonce() {
    await helpers.setNonce(other, 40);
    expect(await ethers.provider.getTransactionCount(other)).to.equal(40);
  },
  async setPrevRandao() {
    const set = helpers.setPrevRandao(7);
    await (ownNetwork ? set : refused(set, 'Rootstock has no PREVRANDAO'));
  },
  async setStorageAt() {
    await helpers.setStorageAt(other, 3, 9);
    expect(await helpers.getStorageAt(other, 3)).to.equal(word(9));
  },
  async takeSnapshot() {
    const snapshot = await helpers.takeSnapshot();
    const height = await time.latestBlock();
    await helpers.mine(2);
    await snapshot.restore();
    expect(await time.latestBlock()).to.equal(height);
  },
  async time() {
    const [start, height] = [await time.latest(), await time.latestBlock()];
    await time.increase(60);
    await time.increaseTo(start + 600);
    expect(await time.latest()).to.equal(start + 600);
    await time.setNextBlockTimestamp(start + 900);
    await time.advanceBlock();
    expect(await time.latest()).to.equal(start + 900);
    await time.advanceBlockTo(height + 9);
    expect(await time.latestBlock()).to.equal(height + 9);
  },
};

describe('network helpers', () => {
  for (const [name, show] of Object.entries(shown)) it(name, show);

  it('are all tested', () => {
    const functions = Object.keys(helpers).filter((name) => name !== 'default');
    expect(functions.filter((name) => !shown[name])).to.deep.equal([]);
  });
});
