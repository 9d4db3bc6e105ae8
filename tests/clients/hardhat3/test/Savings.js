import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { network } from 'hardhat';
import { getAddress } from 'viem';

describe('Savings', async () => {
  const { viem, networkHelpers } = await network.create();
  const { loadFixture, time } = networkHelpers;
  const client = await viem.getPublicClient();
  const [owner, other] = await viem.getWalletClients();

  async function deployed() {
    const end = BigInt(await time.latest()) + 1_000_000n;
    return { savings: await viem.deployContract('Savings', [end], { value: 10n }), end };
  }

  it('keeps the owner, the end and the value', async () => {
    const { savings, end } = await loadFixture(deployed);
    assert.equal(await savings.read.owner(), getAddress(owner.account.address));
    assert.equal(await savings.read.end(), end);
    assert.equal(await client.getBalance({ address: savings.address }), 10n);
  });

  it('emits an event for a deposit', async () => {
    const { savings } = await loadFixture(deployed);
    const deposit = savings.write.deposit({ value: 5n, account: other.account });
    await viem.assertions.emitWithArgs(deposit, savings, 'Deposited', [getAddress(other.account.address), 5n]);
    const events = await savings.getEvents.Deposited({}, { fromBlock: 0n });
    assert.equal(events.length, 1);
  });

  it('changes the balances of the contract and of the sender', async () => {
    const { savings } = await loadFixture(deployed);
    const deposit = savings.write.deposit({ value: 5n, account: other.account });
    const changes = [[savings, 5n], [other.account, -5n]].map(([{ address }, amount]) => ({ address, amount }));
    await viem.assertions.balancesHaveChanged(deposit, changes);
  });

  it('sends as an impersonated account', async () => {
    const { savings } = await loadFixture(deployed);
    const stranger = getAddress('0x00000000000000000000000000000000000000aa');
    await networkHelpers.impersonateAccount(stranger);
    await networkHelpers.setBalance(stranger, 10n ** 18n);
    const deposit = savings.write.deposit({ value: 3n, account: stranger });
    await viem.assertions.emitWithArgs(deposit, savings, 'Deposited', [stranger, 3n]);
  });

  it('fails before the end', async () => {
    const { savings } = await loadFixture(deployed);
    await viem.assertions.revertWith(savings.write.withdraw(), 'too early');
  });

  it('fails for others, with a custom error', async () => {
    const { savings, end } = await loadFixture(deployed);
    await time.increaseTo(end);
    const refused = savings.write.withdraw({ account: other.account });
    const [caller, expected] = [other, owner].map(({ account }) => getAddress(account.address));
    await viem.assertions.revertWithCustomErrorWithArgs(refused, savings, 'NotOwner', [caller, expected]);
  });

  it('pays the owner at the end', async () => {
    const { savings, end } = await loadFixture(deployed);
    await time.increaseTo(end);
    await viem.assertions.emitWithArgs(savings.write.withdraw(), savings, 'Withdrawn', [10n]);
    assert.equal(await client.getBalance({ address: savings.address }), 0n);
  });

  it('mines, takes snapshots and sets balances', async () => {
    const { savings } = await loadFixture(deployed);
    const height = await time.latestBlock();
    const snapshot = await networkHelpers.takeSnapshot();
    await networkHelpers.mine(10);
    assert.equal(await time.latestBlock(), height + 10);
    await snapshot.restore();
    assert.equal(await time.latestBlock(), height);
    await networkHelpers.setBalance(savings.address, 77n);
    assert.equal(await client.getBalance({ address: savings.address }), 77n);
  });
});
