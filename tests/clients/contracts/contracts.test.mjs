// Contracts of Safe and OpenZeppelin as their packages bring them, compiled by them, on the development chain.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { concat, createPublicClient, createTestClient, createWalletClient, encodeFunctionData, encodePacked, hashMessage, http, keccak256, parseEther, size, toHex, zeroAddress, zeroHash } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { mined, MNEMONIC, startChain, token } from '../chain.mjs';

const require = createRequire(import.meta.url);
const ofSafe = (path) => require(`@safe-global/safe-smart-account/build/artifacts/contracts/${path}.json`);
const ofOpenZeppelin = (name) => require(`@openzeppelin/contracts/build/contracts/${name}.json`);
const local = { ...rootstock, id: 33, name: 'regtest', testnet: true, contracts: {} };
const TO = '0x00000000000000000000000000000000000000aa';
const accounts = Array.from({ length: 4 }, (_, index) => mnemonicToAccount(MNEMONIC, { addressIndex: index }));
const [first, second, third, stranger] = accounts;

let chain, reader, tester, writers;

before(async () => {
  chain = await startChain('--log-level', 'warn', '--revert-code', '3');
  const options = { chain: local, transport: http(chain.url), pollingInterval: 50, cacheTime: 0 };
  reader = createPublicClient(options);
  tester = createTestClient({ ...options, mode: 'anvil' });
  writers = new Map(accounts.map((account) => [account, createWalletClient({ ...options, account })]));
});

after(() => chain?.stop());

/** Deploys a contract; gives functions that read it and write to it. */
async function deploy({ abi, bytecode }, ...args) {
  const { status, contractAddress } = await mined(reader, await writers.get(first).deployContract({ abi, bytecode, args }));
  assert.equal(status, 'success');
  return at(abi, contractAddress);
}

const at = (abi, address) => ({
  abi,
  address,
  data: (functionName, ...args) => encodeFunctionData({ abi, functionName, args }),
  read: (functionName, ...args) => reader.readContract({ abi, address, functionName, args }),
  write: async (functionName, args, from = first) => {
    const receipt = await mined(reader, await writers.get(from).writeContract({ abi, address, functionName, args }));
    assert.equal(receipt.status, 'success', functionName);
    return receipt;
  },
});

/** The text or the name of the error with which a call fails. */
async function failure(contract, functionName, args, account = first) {
  const call = reader.simulateContract({ abi: contract.abi, address: contract.address, functionName, args, account });
  const error = await call.then(() => assert.fail(`${functionName} does not fail`), (error) => error);
  const reverted = error.walk((cause) => cause.name === 'ContractFunctionRevertedError')?.data;
  return reverted?.errorName === 'Error' ? reverted.args[0] : (reverted?.errorName ?? error.message);
}

describe('Safe', () => {
  let safe, multiSend;

  before(async () => {
    const singleton = await deploy(ofSafe('Safe.sol/Safe'));
    const factory = await deploy(ofSafe('proxies/SafeProxyFactory.sol/SafeProxyFactory'));
    const handler = await deploy(ofSafe('handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler'));
    multiSend = await deploy(ofSafe('libraries/MultiSend.sol/MultiSend'));
    const owners = [first.address, second.address, third.address];
    const setup = singleton.data('setup', owners, 2n, zeroAddress, '0x', handler.address, zeroAddress, 0n, zeroAddress);
    const { result } = await reader.simulateContract({ abi: factory.abi, address: factory.address, functionName: 'createProxyWithNonce', args: [singleton.address, setup, 1n] });
    await factory.write('createProxyWithNonce', [singleton.address, setup, 1n]);
    safe = at([...singleton.abi, ...handler.abi.filter(({ name }) => name === 'isValidSignature')], result);
    await mined(reader, await writers.get(first).sendTransaction({ to: safe.address, value: parseEther('1') }));
  });

  const types = {
    SafeTx: ['to address', 'value uint256', 'data bytes', 'operation uint8', 'safeTxGas uint256', 'baseGas uint256', 'gasPrice uint256', 'gasToken address', 'refundReceiver address', 'nonce uint256']
      .map((field) => field.split(' ')).map(([name, type]) => ({ name, type })),
  };

  /** The arguments of execTransaction, signed by these owners. */
  async function signed(owners, { to, value = 0n, data = '0x', operation = 0 }) {
    const nonce = await safe.read('nonce');
    const message = { to, value, data, operation, safeTxGas: 0n, baseGas: 0n, gasPrice: 0n, gasToken: zeroAddress, refundReceiver: zeroAddress, nonce };
    const domain = { chainId: 33, verifyingContract: safe.address };
    const inOrder = [...owners].sort((one, other) => (one.address.toLowerCase() < other.address.toLowerCase() ? -1 : 1));
    const signatures = await Promise.all(inOrder.map((owner) => owner.signTypedData({ domain, types, primaryType: 'SafeTx', message })));
    return [to, value, data, operation, 0n, 0n, 0n, zeroAddress, zeroAddress, concat(signatures)];
  }

  test('a transaction of two of three owners is executed, by whoever sends it', async () => {
    const before = await reader.getBalance({ address: TO });
    await safe.write('execTransaction', await signed([first, third], { to: TO, value: 7n }), stranger);
    assert.equal(await reader.getBalance({ address: TO }), before + 7n);
    assert.equal(await safe.read('nonce'), 1n);
  });

  test('too few signatures and one of a stranger are refused', async () => {
    assert.match(await failure(safe, 'execTransaction', await signed([first], { to: TO, value: 7n })), /GS020/);
    assert.match(await failure(safe, 'execTransaction', await signed([first, stranger], { to: TO, value: 7n })), /GS026/);
  });

  test('MultiSend executes several calls in one transaction', async () => {
    const part = ({ to, value = 0n, data = '0x' }) => encodePacked(['uint8', 'address', 'uint256', 'uint256', 'bytes'], [0, to, value, BigInt(size(data)), data]);
    const calls = [{ to: TO, value: 1n }, { to: safe.address, data: safe.data('addOwnerWithThreshold', stranger.address, 3n) }];
    const before = await reader.getBalance({ address: TO });
    const data = multiSend.data('multiSend', concat(calls.map(part)));
    await safe.write('execTransaction', await signed([second, third], { to: multiSend.address, data, operation: 1 }));
    assert.equal(await reader.getBalance({ address: TO }), before + 1n);
    assert.deepEqual([(await safe.read('getOwners')).length, await safe.read('getThreshold')], [4, 3n]);
    await safe.write('execTransaction', await signed([first, second, stranger], { to: TO, value: 1n }));
  });

  test('the handler checks a signed message by ERC-1271', async () => {
    const hash = hashMessage('hello');
    const message = { domain: { chainId: 33, verifyingContract: safe.address }, types: { SafeMessage: [{ name: 'message', type: 'bytes' }] }, primaryType: 'SafeMessage', message: { message: hash } };
    const owners = [first, second, third].sort((one, other) => (one.address.toLowerCase() < other.address.toLowerCase() ? -1 : 1));
    const signature = concat(await Promise.all(owners.map((owner) => owner.signTypedData(message))));
    assert.equal(await safe.read('isValidSignature', hash, signature), '0x1626ba7e');
  });
});

describe('OpenZeppelin', () => {
  test('a timelock executes after its delay, and not before', async () => {
    const timelock = await deploy(ofOpenZeppelin('TimelockController'), 3_600n, [first.address], [zeroAddress], zeroAddress);
    await mined(reader, await writers.get(first).sendTransaction({ to: timelock.address, value: 10n }));
    const call = [TO, 10n, '0x', zeroHash, keccak256(toHex('salt'))];
    assert.equal(await failure(timelock, 'schedule', [...call, 3_600n], second), 'AccessControlUnauthorizedAccount');
    await timelock.write('schedule', [...call, 3_600n]);
    assert.equal(await failure(timelock, 'execute', call), 'TimelockUnexpectedOperationState');
    await tester.increaseTime({ seconds: 3_601 });
    await tester.mine({ blocks: 1 });
    const before = await reader.getBalance({ address: TO });
    await timelock.write('execute', call, second);
    assert.equal(await reader.getBalance({ address: TO }), before + 10n);
  });

  test('a vesting wallet releases what is due', async () => {
    const { timestamp } = await reader.getBlock();
    const wallet = await deploy(ofOpenZeppelin('VestingWallet'), second.address, timestamp + 1_000n, 1_000n);
    await mined(reader, await writers.get(first).sendTransaction({ to: wallet.address, value: 1_000_000n }));
    assert.equal(await wallet.read('releasable'), 0n);
    await tester.setNextBlockTimestamp({ timestamp: timestamp + 1_250n });
    await wallet.write('release', []);
    assert.equal(await wallet.read('released'), 250_000n);
    await tester.setNextBlockTimestamp({ timestamp: timestamp + 3_000n });
    await wallet.write('release', []);
    assert.equal(await reader.getBalance({ address: wallet.address }), 0n);
  });

  test('a proxy is upgraded by its admin only', async () => {
    const [one, two] = [await deploy(token, 'One', 5n), await deploy(token, 'Two', 5n)];
    const proxy = await deploy(ofOpenZeppelin('TransparentUpgradeableProxy'), one.address, first.address, one.data('name'));
    const slot = '0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103';
    const stored = await reader.getStorageAt({ address: proxy.address, slot });
    const admin = at(ofOpenZeppelin('ProxyAdmin').abi, `0x${stored.slice(-40)}`);
    const behind = at(token.abi, proxy.address);
    assert.equal(await behind.read('balanceOf', first.address), 0n);
    assert.equal(await failure(admin, 'upgradeAndCall', [proxy.address, two.address, '0x'], second), 'OwnableUnauthorizedAccount');
    await admin.write('upgradeAndCall', [proxy.address, two.address, '0x']);
    const implementation = await reader.getStorageAt({ address: proxy.address, slot: '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc' });
    assert.equal(`0x${implementation.slice(-40)}`, two.address);
  });

  test('an access manager delays the calls of a role', async () => {
    const manager = await deploy(ofOpenZeppelin('AccessManager'), first.address);
    await manager.write('grantRole', [7n, second.address, 600]);
    const [member, delay] = await manager.read('hasRole', 7n, second.address);
    assert.deepEqual([member, delay], [true, 600]);
    assert.equal(await failure(manager, 'grantRole', [7n, third.address, 0], third), 'AccessManagerUnauthorizedAccount');
    await manager.write('revokeRole', [7n, second.address]);
    assert.deepEqual((await manager.read('hasRole', 7n, second.address))[0], false);
  });
});
