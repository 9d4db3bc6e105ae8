// ethers against the development chain: deploy, call, revert, logs, past state, snapshots.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ContractFactory, HDNodeWallet, JsonRpcProvider, parseEther, verifyMessage, verifyTypedData } from 'ethers';
import { MNEMONIC, startChain, token } from './chain.mjs';

let chain, provider, control, wallet, other, contract;

before(async () => {
  chain = await startChain();
  provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
  control = new JsonRpcProvider(chain.control, undefined, { cacheTimeout: -1 });
  wallet = HDNodeWallet.fromPhrase(MNEMONIC, '', "m/44'/60'/0'/0/0").connect(provider);
  other = HDNodeWallet.fromPhrase(MNEMONIC, '', "m/44'/60'/0'/0/1").connect(provider);
  const factory = new ContractFactory(token.abi, token.bytecode, wallet);
  contract = await factory.deploy('Test', 1000n);
  await contract.waitForDeployment();
});

after(async () => {
  provider?.destroy();
  control?.destroy();
  await chain?.stop();
});

test('the network and the funded accounts', async () => {
  assert.equal((await provider.getNetwork()).chainId, 33n);
  assert.ok((await provider.getBalance(wallet.address)) > parseEther('1'));
  const accounts = (await control.listAccounts()).map((signer) => signer.address);
  assert.ok(accounts.includes(wallet.address) && accounts.includes(other.address));
});

test('a deployed contract answers', async () => {
  assert.equal(await contract.name(), 'Test');
  assert.equal(await contract.balanceOf(wallet.address), 1000n);
  assert.notEqual(await provider.getCode(await contract.getAddress()), '0x');
});

test('a transaction is mined, with its logs', async () => {
  const sent = await contract.transfer(other.address, 7n);
  const receipt = await sent.wait();
  assert.equal(receipt.status, 1);
  assert.equal(receipt.from, wallet.address);
  const [event] = receipt.logs.map((log) => contract.interface.parseLog(log));
  assert.deepEqual([event.name, event.args.to, event.args.value], ['Transfer', other.address, 7n]);
  const transaction = await provider.getTransaction(sent.hash);
  assert.equal(transaction.blockHash, receipt.blockHash);
});

test('logs are found by address, topic and range', async () => {
  const found = await contract.queryFilter(contract.filters.Transfer(wallet.address), 0, 'latest');
  assert.ok(found.length >= 1);
  assert.ok(found.every((log) => log.args.from === wallet.address));
  const none = await contract.queryFilter(contract.filters.Transfer(other.address), 0, 'latest');
  assert.equal(none.length, 0);
});

test('errors come back decoded', async () => {
  const refused = contract.connect(other).transfer.staticCall(wallet.address, 500n);
  await assert.rejects(refused, (error) => {
    assert.equal(error.revert?.name, 'NotEnough');
    assert.equal(error.revert.args.wanted, 500n);
    return true;
  });
  await assert.rejects(contract.transfer.staticCall('0x' + '00'.repeat(20), 1n), { reason: 'no receiver' });
  await assert.rejects(contract.divide.staticCall(1n, 0n), /Panic|panic|division|DIVIDE_BY_ZERO/i);
  await assert.rejects(contract.burnGas.staticCall({ gasLimit: 100_000n }));
});

test('an estimate is enough', async () => {
  const gasLimit = await contract.transfer.estimateGas(other.address, 1n);
  const receipt = await (await contract.transfer(other.address, 1n, { gasLimit })).wait();
  assert.equal(receipt.status, 1);
  await assert.rejects(contract.connect(other).transfer.estimateGas(wallet.address, 500n));
});

test('past state is kept', async () => {
  const before = await provider.getBlockNumber();
  const balance = await contract.balanceOf(other.address);
  await (await contract.transfer(other.address, 3n)).wait();
  assert.equal(await contract.balanceOf(other.address, { blockTag: before }), balance);
  assert.equal(await contract.balanceOf(other.address), balance + 3n);
});

test('a snapshot brings everything back', async () => {
  const balance = await contract.balanceOf(other.address);
  const height = await provider.getBlockNumber();
  const id = await control.send('evm_snapshot', []);
  // Sent to the chain itself: front ends send again what they have sent and what leaves the chain.
  await (await contract.connect(wallet.connect(control)).transfer(other.address, 5n)).wait();
  assert.equal(await control.send('evm_revert', [id]), true);
  assert.equal(await control.getBlockNumber(), height);
  // Light clients follow the branch with the most work: the one that was left has a block.
  await control.send('hardhat_mine', ['0x2']);
  await chain.shown();
  assert.equal(await provider.getBlockNumber(), height + 2);
  assert.equal(await contract.balanceOf(other.address), balance);
});

test('plain transfers cost 21,000 and change both balances', async () => {
  const to = '0x00000000000000000000000000000000000abcde';
  const receipt = await (await wallet.sendTransaction({ to, value: 5n })).wait();
  assert.equal(receipt.gasUsed, 21000n);
  assert.equal(await provider.getBalance(to), 5n);
});

test('accounts of the node sign messages and typed data', async () => {
  const signer = await control.getSigner(0);
  assert.equal(signer.address, wallet.address);
  for (const message of ['hello', '', new Uint8Array([0, 255])]) {
    const signature = await signer.signMessage(message);
    assert.equal(signature, await wallet.signMessage(message));
    assert.equal(verifyMessage(message, signature), wallet.address);
    assert.equal(await signer._legacySignMessage(message), signature);
  }
  const types = {
    Order: [{ name: 'items', type: 'Item[2]' }, { name: 'note', type: 'string' }, { name: 'hash', type: 'bytes32' }],
    Item: [{ name: 'id', type: 'uint8' }, { name: 'owner', type: 'Owner' }, { name: 'parts', type: 'int128[][]' }],
    Owner: [{ name: 'account', type: 'address' }, { name: 'data', type: 'bytes' }, { name: 'active', type: 'bool' }],
  };
  const item = (id) => ({ id, owner: { account: other.address, data: '0x0102', active: id === 1 }, parts: [[-1n, 2n ** 127n - 1n], []] });
  const value = { items: [item(1), item(255)], note: 'ä€', hash: `0x${'12'.repeat(32)}` };
  for (const domain of [{ name: 'Shop', version: '2', chainId: 33, verifyingContract: other.address }, { version: '2', salt: `0x${'34'.repeat(32)}` }, {}]) {
    const signature = await signer.signTypedData(domain, types, value);
    assert.equal(signature, await wallet.signTypedData(domain, types, value));
    assert.equal(verifyTypedData(domain, types, value, signature), wallet.address);
  }
  await assert.rejects(control.send('eth_signTypedData_v4', [signer.address, { types, primaryType: 'Order', domain: {}, message: {} }]), (error) => error.error?.code === -32602);
});
