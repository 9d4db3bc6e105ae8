const { anyValue } = require('@nomicfoundation/hardhat-chai-matchers/withArgs');
const { loadFixture, mine, setBalance, stopImpersonatingAccount, takeSnapshot, time } = require('@nomicfoundation/hardhat-network-helpers');
const { expect } = require('chai');
const { ethers } = require('hardhat');

describe('Savings', () => {
  async function deployed() {
    const end = (await time.latest()) + 1_000_000;
    const [owner, other] = await ethers.getSigners();
    const savings = await ethers.deployContract('Savings', [end], { value: 10n });
    return { savings, end, owner, other };
  }

  describe('deployment', () => {
    it('keeps the owner, the end and the value', async () => {
      const { savings, end, owner } = await loadFixture(deployed);
      expect(await savings.owner()).to.equal(owner.address);
      expect(await savings.end()).to.equal(end);
      expect(await ethers.provider.getBalance(savings.target)).to.equal(10n);
    });

    it('fails if the end has passed', async () => {
      const latest = await time.latest();
      await expect(ethers.deployContract('Savings', [latest])).to.be.revertedWith('the end has passed');
    });
  });

  describe('deposits', () => {
    it('emits an event and changes the balance', async () => {
      const { savings, other } = await loadFixture(deployed);
      await expect(savings.connect(other).deposit({ value: 5n })).to.emit(savings, 'Deposited').withArgs(other.address, 5n);
    });

    it('changes the balances of the contract and of the sender', async () => {
      const { savings, other } = await loadFixture(deployed);
      const deposit = (value) => savings.connect(other).deposit({ value });
      await expect(deposit(5n)).to.changeEtherBalance(savings, 5n);
      await expect(deposit(7n)).to.changeEtherBalances([savings, other], [7n, -7n]);
      await expect(expect(deposit(5n)).to.changeEtherBalance(savings, 6n)).to.be.rejectedWith('to change by 6 wei');
    });
  });

  describe('withdrawals', () => {
    it('fails before the end', async () => {
      const { savings } = await loadFixture(deployed);
      await expect(savings.withdraw()).to.be.revertedWith('too early');
    });

    it('fails for others, with a custom error', async () => {
      const { savings, end, owner, other } = await loadFixture(deployed);
      await time.increaseTo(end);
      await expect(savings.connect(other).withdraw())
        .to.be.revertedWithCustomError(savings, 'NotOwner')
        .withArgs(other.address, owner.address);
    });

    it('pays the owner at the end', async () => {
      const { savings, end } = await loadFixture(deployed);
      await time.increaseTo(end);
      await expect(savings.withdraw()).to.emit(savings, 'Withdrawn').withArgs(anyValue);
      expect(await ethers.provider.getBalance(savings.target)).to.equal(0n);
    });
  });

  describe('helpers of the network', () => {
    it('sends as an impersonated account', async () => {
      const { savings, end } = await loadFixture(deployed);
      await time.increaseTo(end);
      const stranger = await ethers.getImpersonatedSigner('0x00000000000000000000000000000000000000aa');
      await setBalance(stranger.address, 10n ** 18n);
      await expect(savings.connect(stranger).deposit({ value: 3n })).to.emit(savings, 'Deposited').withArgs(stranger.address, 3n);
      await stopImpersonatingAccount(stranger.address);
      await expect(savings.connect(stranger).deposit({ value: 3n })).to.be.rejected;
    });

    it('mines, takes snapshots and sets balances', async () => {
      const { savings } = await loadFixture(deployed);
      const height = await time.latestBlock();
      const snapshot = await takeSnapshot();
      await mine(10);
      expect(await time.latestBlock()).to.equal(height + 10);
      await snapshot.restore();
      expect(await time.latestBlock()).to.equal(height);
      await setBalance(savings.target, 77n);
      expect(await ethers.provider.getBalance(savings.target)).to.equal(77n);
    });

    it('moves the time by what is asked, on a chain that is ahead of the clock', async () => {
      await mine(200);
      const start = await time.latest();
      expect(await time.increase(61)).to.be.within(start + 61, start + 90);
      await mine(3, { interval: 600 });
      expect(await time.latest()).to.be.within(start + 61 + 1200, start + 90 + 1260);
      await time.setNextBlockTimestamp(start + 100_000);
      await mine();
      expect(await time.latest()).to.equal(start + 100_000);
    });
  });
});
