// viem against the development chain, with the chain's own test actions.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  ContractFunctionRevertedError,
  createPublicClient,
  createTestClient,
  createWalletClient,
  decodeErrorResult,
  http,
  parseEther,
  recoverMessageAddress,
  recoverTypedDataAddress,
} from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { mined, MNEMONIC, startChain, token } from './chain.mjs';

let chain, reader, writer, own, impersonator, tester, address;
const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const account = mnemonicToAccount(MNEMONIC);

before(async () => {
  chain = await startChain();
  const options = { chain: local, transport: http(chain.url), pollingInterval: 50, cacheTime: 0 };
  reader = createPublicClient(options);
  writer = createWalletClient({ ...options, account });
  const directly = { ...options, transport: http(chain.control) };
  own = createPublicClient(directly);
  impersonator = createWalletClient(directly);
  tester = createTestClient({ ...directly, mode: 'anvil' });
  const hash = await writer.deployContract({ ...token, args: ['Viem', 50n] });
  address = (await mined(reader, hash)).contractAddress;
});

after(() => chain?.stop());

test('reads and writes', async () => {
  const to = '0x00000000000000000000000000000000000000aa';
  const hash = await writer.writeContract({ ...token, address, functionName: 'transfer', args: [to, 9n] });
  const receipt = await mined(reader, hash);
  assert.equal(receipt.status, 'success');
  assert.equal(await reader.readContract({ ...token, address, functionName: 'balanceOf', args: [to] }), 9n);
  const logs = await reader.getContractEvents({ ...token, address, eventName: 'Transfer', fromBlock: 0n });
  assert.equal(logs.length, 2);
});

// viem decodes by itself only what comes with code 3; Rootstock's nodes and this one say -32015.
test('revert data can be decoded', async () => {
  const call = { ...token, address, functionName: 'transfer', args: [account.address, 51n], account };
  await assert.rejects(reader.simulateContract(call), (error) => {
    const { data } = error.walk((cause) => typeof cause.data === 'string');
    assert.equal(decodeErrorResult({ abi: token.abi, data }).errorName, 'NotEnough');
    return true;
  });
});

test('viem decodes reverts by itself with --revert-code 3', async () => {
  const other = await startChain('--revert-code', '3');
  try {
    const options = { chain: local, transport: http(other.url), pollingInterval: 50, cacheTime: 0 };
    const looker = createPublicClient(options);
    const deployed = await createWalletClient({ ...options, account }).deployContract({ ...token, args: ['Viem', 50n] });
    const { contractAddress } = await mined(looker, deployed);
    const call = { ...token, address: contractAddress, functionName: 'transfer', args: [account.address, 51n], account };
    await assert.rejects(looker.simulateContract(call), (error) => {
      const revert = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
      assert.equal(revert?.data?.errorName, 'NotEnough');
      return true;
    });
  } finally {
    await other.stop();
  }
});

test('simulates blocks of calls', async () => {
  const to = '0x00000000000000000000000000000000000000cc';
  const poor = '0x00000000000000000000000000000000000000dd';
  const height = await reader.getBlockNumber();
  const transfer = (amount) => ({ ...token, to: address, functionName: 'transfer', args: [to, amount], account: account.address });
  const balance = { ...token, to: address, functionName: 'balanceOf', args: [to] };
  const [first, second] = await reader.simulateBlocks({
    blocks: [
      {
        stateOverrides: [{ address: poor, balance: parseEther('1') }],
        calls: [transfer(3n), transfer(1_000_000n), { account: poor, to, value: 5n }],
      },
      { blockOverrides: { number: height + 2n, time: 5_000_000_000n }, calls: [balance] },
    ],
    traceTransfers: true,
  }).then((blocks) => [blocks[0], blocks.at(-1)]);
  assert.deepEqual(first.calls.map((call) => call.status), ['success', 'failure', 'success']);
  assert.equal(first.calls[1].error.walk((cause) => cause.data?.errorName).data.errorName, 'NotEnough');
  assert.equal(first.calls[0].logs.length, 1);
  assert.equal(first.calls[2].logs[0].address, '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee');
  assert.equal(first.number, height + 1n);
  assert.deepEqual([second.number, second.timestamp, second.calls[0].result], [height + 2n, 5_000_000_000n, 3n]);
  assert.equal(await reader.getBlockNumber(), height);
});

test('simulates calls with the assets that they move', async () => {
  const to = '0x00000000000000000000000000000000000000cc';
  const { assetChanges, results } = await reader.simulateCalls({
    account: account.address,
    calls: [{ to, value: 7n }, { ...token, to: address, functionName: 'transfer', args: [to, 2n] }],
    traceAssetChanges: true,
  });
  assert.deepEqual(results.map((result) => result.status), ['success', 'success']);
  assert.ok(assetChanges.some((change) => change.value.diff === -7n), 'the value');
  const moved = assetChanges.find((change) => change.token.address === address.toLowerCase());
  assert.equal(moved?.value.diff, -2n);
});

test('test actions: balance, impersonation, time, mining', async () => {
  const who = '0x00000000000000000000000000000000000000bb';
  await tester.setBalance({ address: who, value: parseEther('2') });
  assert.equal(await own.getBalance({ address: who }), parseEther('2'));
  await tester.impersonateAccount({ address: who });
  const hash = await impersonator.sendTransaction({ account: who, to: account.address, value: 1n });
  // Not of `reader`: the transaction has no valid signature, and front ends refuse to tell about it.
  assert.equal((await mined(own, hash)).from, who);
  await chain.shown();
  await tester.stopImpersonatingAccount({ address: who });

  const height = await reader.getBlockNumber();
  await tester.mine({ blocks: 3 });
  await chain.shown();
  assert.equal(await reader.getBlockNumber(), height + 3n);
  const { timestamp } = await reader.getBlock();
  await tester.setNextBlockTimestamp({ timestamp: timestamp + 1000n });
  await tester.mine({ blocks: 1 });
  await chain.shown();
  assert.equal((await reader.getBlock()).timestamp, timestamp + 1000n);

  const id = await tester.snapshot();
  await tester.mine({ blocks: 2 });
  await tester.revert({ id });
  assert.equal(await own.getBlockNumber(), height + 4n);
  // Light clients follow the branch with the most work.
  await tester.mine({ blocks: 3 });
  await chain.shown();
  assert.equal(await reader.getBlockNumber(), height + 7n);
});

test('test actions move the time by what is asked, on a chain that is ahead of the clock', async () => {
  await tester.mine({ blocks: 200 });
  const time = async () => (await own.getBlock()).timestamp;
  let start = await time();
  for (const seconds of [61, 1, 3_600]) {
    await tester.increaseTime({ seconds });
    await tester.mine({ blocks: 1 });
    const moved = (await time()) - start;
    assert.ok(moved >= BigInt(seconds) && moved < BigInt(seconds) + 30n, `${moved} for ${seconds}`);
    start += moved;
  }
  await tester.mine({ blocks: 3, interval: 600 });
  assert.equal((await time()) - start, 1_800n);
  await tester.setBlockTimestampInterval({ interval: 5 });
  start = await time();
  await tester.mine({ blocks: 2 });
  assert.equal((await time()) - start, 10n);
  await tester.increaseTime({ seconds: 100 });
  await tester.mine({ blocks: 1 });
  assert.ok((await time()) - start >= 110n);
  await tester.removeBlockTimestampInterval();
  await tester.setNextBlockTimestamp({ timestamp: (await time()) + 77n });
  start = await time();
  await tester.mine({ blocks: 1 });
  assert.equal((await time()) - start, 77n);
  const hardhat = createTestClient({ chain: local, transport: http(chain.control), mode: 'hardhat' });
  start = await time();
  await hardhat.increaseTime({ seconds: 61 });
  await hardhat.mine({ blocks: 3, interval: 600 });
  assert.ok((await time()) - start >= 1_261n && (await time()) - start < 1_300n);
  await chain.shown();
});

// What two numbers of senders at once do: viem signs, and the node does.
test('transactions that are sent at once all get their hash and are mined', async () => {
  const [sender] = (await impersonator.getAddresses()).slice(-1);
  const options = { account: sender, to: account.address, value: 1n, gas: 21_000n };
  const hashes = await Promise.all(Array.from({ length: 40 }, () => impersonator.sendTransaction(options)));
  const receipts = await Promise.all(hashes.map((hash) => mined(own, hash)));
  assert.ok(receipts.every(({ status }) => status === 'success'));
  const nonces = await Promise.all(hashes.map(async (hash) => (await own.getTransaction({ hash })).nonce));
  assert.equal(new Set(nonces).size, 40);
  const direct = createWalletClient({ chain: local, transport: http(chain.control), account: mnemonicToAccount(MNEMONIC, { addressIndex: 7 }) });
  const first = await own.getTransactionCount({ address: direct.account.address });
  const raw = await Promise.all(Array.from({ length: 40 }, (_, n) => direct.signTransaction({ to: sender, gas: 21_000n, gasPrice: 60_000_000n, type: 'legacy', nonce: first + n })));
  const sent = await Promise.all(raw.reverse().map((serializedTransaction) => own.sendRawTransaction({ serializedTransaction })));
  assert.ok((await Promise.all(sent.map((hash) => mined(own, hash)))).every(({ status }) => status === 'success'));
  await chain.shown();
});

test('accounts of the node sign messages and typed data', async () => {
  const [signer] = await impersonator.getAddresses();
  const own_ = mnemonicToAccount(MNEMONIC);
  assert.equal(signer, own_.address);
  for (const message of ['hello', '', 'ä€', { raw: '0x00ff' }]) {
    const signature = await impersonator.signMessage({ account: signer, message });
    assert.equal(signature, await own_.signMessage({ message }));
    assert.equal(await recoverMessageAddress({ message, signature }), signer);
  }
  const types = {
    Person: [{ name: 'name', type: 'string' }, { name: 'wallets', type: 'address[]' }, { name: 'tags', type: 'bytes4[2][]' }],
    Mail: [{ name: 'from', type: 'Person' }, { name: 'to', type: 'Person[]' }, { name: 'data', type: 'bytes' }, { name: 'delta', type: 'int64' }, { name: 'large', type: 'uint256' }, { name: 'paid', type: 'bool' }],
  };
  const person = (name) => ({ name, wallets: [signer, `0x${'11'.repeat(20)}`], tags: [['0x01020304', '0xffffffff']] });
  const message = { from: person('Cow'), to: [person('Bob'), person('ä€')], data: '0x', delta: -5n, large: 2n ** 256n - 1n, paid: true };
  const whole = { name: 'Mail', version: '1', chainId: 33, verifyingContract: `0x${'cc'.repeat(20)}`, salt: `0x${'5a'.repeat(32)}` };
  for (const domain of [whole, { name: 'Mail' }, { chainId: 33n, verifyingContract: whole.verifyingContract }, {}]) {
    const data = { domain, types, primaryType: 'Mail', message };
    const signature = await impersonator.signTypedData({ account: signer, ...data });
    assert.equal(signature, await own_.signTypedData(data));
    assert.equal(await recoverTypedDataAddress({ ...data, signature }), signer);
  }
});
