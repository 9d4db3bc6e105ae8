// Every test action of viem in its modes for anvil and hardhat, against the development chain without flags. An action that
// a later viem adds fails here until it has a line of its own.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  http,
  parseEther,
  testActions,
  zeroHash,
} from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { MNEMONIC, startChain } from './chain.mjs';

const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const account = mnemonicToAccount(MNEMONIC);
const other = '0x00000000000000000000000000000000000000ee';
// The program of the npm package leaves dumps out.
const ofPackage = process.env.ROOTLIGHT.endsWith('.js');
let chain, options, reader, writer;

before(async () => {
  chain = await startChain();
  options = { chain: local, transport: http(chain.control), pollingInterval: 50, cacheTime: 0 };
  reader = createPublicClient(options);
  writer = createWalletClient(options);
});

after(() => chain?.stop());

const send = (value) => writer.sendTransaction({ account: account.address, to: other, value });
const height = () => reader.getBlockNumber();
const time = async () => (await reader.getBlock()).timestamp;
const refused = (action, hint) => assert.rejects(action, (error) => hint.test(error.message) || assert.fail(error.message));

/** What shows that each action works. */
const shown = {
  async dropTransaction(client) {
    await client.setAutomine(false);
    const hash = await send(1n);
    await client.dropTransaction({ hash });
    assert.equal((await client.getTxpoolStatus()).pending, 0);
    await client.setAutomine(true);
  },
  async dumpState(client) {
    if (ofPackage) return refused(client.dumpState(), /the package does not have it/);
    const state = await client.dumpState();
    await client.setBalance({ address: other, value: 1n });
    await client.loadState({ state });
    return assert.match(state, /^0x1f8b/);
  },
  async loadState(client) {
    if (ofPackage) return refused(client.loadState({ state: '0x' }), /the package does not have it/);
    await client.setBalance({ address: other, value: 77n });
    const state = await client.dumpState();
    await client.setBalance({ address: other, value: 78n });
    await client.loadState({ state });
    return assert.equal(await reader.getBalance({ address: other }), 77n);
  },
  getAutomine: async (client) => assert.equal(await client.getAutomine(), true),
  async getTxpoolContent(client) {
    assert.deepEqual(await client.getTxpoolContent(), { pending: {}, queued: {} });
  },
  async getTxpoolStatus(client) {
    assert.deepEqual(await client.getTxpoolStatus(), { pending: 0, queued: 0 });
  },
  async inspectTxpool(client) {
    assert.deepEqual(await client.inspectTxpool(), { pending: {}, queued: {} });
  },
  async impersonateAccount(client) {
    await client.setBalance({ address: other, value: parseEther('1') });
    await client.impersonateAccount({ address: other });
    await writer.sendTransaction({ account: other, to: account.address, value: 1n });
  },
  async stopImpersonatingAccount(client) {
    await client.stopImpersonatingAccount({ address: other });
    await refused(writer.sendTransaction({ account: other, to: account.address, value: 1n }), /account/);
  },
  async increaseTime(client) {
    const before = await time();
    await client.increaseTime({ seconds: 420 });
    await client.mine({ blocks: 1 });
    assert.ok((await time()) >= before + 420n);
  },
  async mine(client) {
    const before = await height();
    await client.mine({ blocks: 3, interval: 60 });
    assert.equal(await height(), before + 3n);
  },
  async setBlockTimestampInterval(client) {
    await client.setBlockTimestampInterval({ interval: 7 });
    const before = await time();
    await client.mine({ blocks: 2 });
    assert.equal(await time(), before + 14n);
  },
  removeBlockTimestampInterval: (client) => client.removeBlockTimestampInterval(),
  async reset(client) {
    await client.mine({ blocks: 1 });
    await client.reset();
    assert.equal(await height(), 0n);
  },
  async snapshot(client) {
    assert.match(await client.snapshot(), /^0x/);
  },
  async revert(client) {
    const id = await client.snapshot();
    const before = await height();
    await client.mine({ blocks: 2 });
    await client.revert({ id });
    assert.equal(await height(), before);
  },
  async sendUnsignedTransaction(client) {
    await client.setBalance({ address: other, value: parseEther('1') });
    const hash = await client.sendUnsignedTransaction({ from: other, to: account.address, value: 5n });
    assert.equal((await reader.getTransactionReceipt({ hash })).from, other);
  },
  async setAutomine(client) {
    await client.setAutomine(false);
    assert.equal(await client.getAutomine(), false);
    await client.setAutomine(true);
  },
  async setBalance(client) {
    await client.setBalance({ address: other, value: parseEther('3') });
    assert.equal(await reader.getBalance({ address: other }), parseEther('3'));
  },
  async setBlockGasLimit(client) {
    await client.setBlockGasLimit({ gasLimit: 10_000_000n });
  },
  async setCode(client) {
    await client.setCode({ address: other, bytecode: '0x00' });
    assert.equal(await reader.getCode({ address: other }), '0x00');
  },
  async setCoinbase(client) {
    await client.setCoinbase({ address: other });
    await client.mine({ blocks: 1 });
    assert.equal((await reader.getBlock()).miner, other);
  },
  async setIntervalMining(client) {
    await client.setIntervalMining({ interval: 3600 });
    assert.equal(await client.getAutomine(), false);
    await client.setAutomine(true);
  },
  setLoggingEnabled: (client) => client.setLoggingEnabled(true),
  setMinGasPrice: (client) => client.setMinGasPrice({ gasPrice: 0n }),
  setNextBlockBaseFeePerGas: (client) =>
    refused(client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n }), /no base fee.*hardhat_setMinGasPrice/s),
  async setNextBlockTimestamp(client) {
    const next = (await time()) + 900n;
    await client.setNextBlockTimestamp({ timestamp: next });
    await client.mine({ blocks: 1 });
    assert.equal(await time(), next);
  },
  async setNonce(client) {
    const nonce = (await reader.getTransactionCount({ address: other })) + 3;
    await client.setNonce({ address: other, nonce });
    assert.equal(await reader.getTransactionCount({ address: other }), nonce);
  },
  setRpcUrl: (client) => refused(client.setRpcUrl('http://127.0.0.1:1'), /anvil_reset/),
  async setStorageAt(client) {
    const value = zeroHash.replace(/0$/, '9');
    await client.setStorageAt({ address: other, index: 2, value });
    assert.equal(await reader.getStorageAt({ address: other, slot: '0x2' }), value);
  },
};

for (const mode of ['anvil', 'hardhat']) {
  test(`every test action of viem works in its mode for ${mode}`, async (context) => {
    const client = createTestClient({ ...options, mode });
    const actions = Object.keys(testActions({ mode })(client));
    assert.deepEqual(actions.filter((name) => !shown[name]), [], 'actions without a test');
    for (const name of Object.keys(shown)) {
      await context.test(name, () => shown[name](client));
    }
  });
}

test('a transaction is sent and answered with its receipt', async () => {
  const own = createWalletClient({ ...options, account });
  const receipt = await own.sendTransactionSync({ to: other, value: 1n, type: 'legacy' });
  assert.equal(receipt.status, 'success');
  const request = await own.prepareTransactionRequest({ to: other, value: 2n, type: 'legacy' });
  const serializedTransaction = await own.signTransaction(request);
  const sent = await own.sendRawTransactionSync({ serializedTransaction, timeout: 2_000 });
  assert.equal(sent.from, account.address.toLowerCase());
});
