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
