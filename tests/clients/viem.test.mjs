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
import { MNEMONIC, startChain, token } from './chain.mjs';

let chain, reader, writer, tester, address;
const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const account = mnemonicToAccount(MNEMONIC);

before(async () => {
  chain = await startChain();
  const options = { chain: local, transport: http(chain.url), pollingInterval: 50, cacheTime: 0 };
  reader = createPublicClient(options);
  writer = createWalletClient({ ...options, account });
  tester = createTestClient({ ...options, mode: 'anvil' });
  const hash = await writer.deployContract({ ...token, args: ['Viem', 50n] });
  address = (await reader.waitForTransactionReceipt({ hash })).contractAddress;
});

after(() => chain?.stop());

test('reads and writes', async () => {
  const to = '0x00000000000000000000000000000000000000aa';
  const hash = await writer.writeContract({ ...token, address, functionName: 'transfer', args: [to, 9n] });
  const receipt = await reader.waitForTransactionReceipt({ hash });
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
    const { contractAddress } = await looker.waitForTransactionReceipt({ hash: deployed });
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
  assert.equal(await reader.getBalance({ address: who }), parseEther('2'));
  await tester.impersonateAccount({ address: who });
  const hash = await writer.sendTransaction({ account: who, to: account.address, value: 1n });
  assert.equal((await reader.waitForTransactionReceipt({ hash })).from, who);
  await tester.stopImpersonatingAccount({ address: who });

  const height = await reader.getBlockNumber();
  await tester.mine({ blocks: 3 });
  assert.equal(await reader.getBlockNumber(), height + 3n);
  const { timestamp } = await reader.getBlock();
  await tester.setNextBlockTimestamp({ timestamp: timestamp + 1000n });
  await tester.mine({ blocks: 1 });
  assert.equal((await reader.getBlock()).timestamp, timestamp + 1000n);

  const id = await tester.snapshot();
  await tester.mine({ blocks: 2 });
  await tester.revert({ id });
  assert.equal(await reader.getBlockNumber(), height + 4n);
});
