// viem and ethers over the npm package's providers: reverts with their reasons, events, and accounts of a wallet.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { BrowserProvider, Contract } from 'ethers';
import { ContractFunctionRevertedError, createPublicClient, createWalletClient, custom } from 'viem';
import { rootstock } from 'viem/chains';
import { createDevChain } from '../../pkg/dev.js';
import { createProvider } from '../../pkg/index.js';
import { transportTo } from '../../pkg/test/lib/chain-transport.mjs';

const token = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));
const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const TO = '0x00000000000000000000000000000000000000aa';

/** The chain, and a light client of it whose wallet is the chain itself. */
let chain, light, running, account, address;

before(async () => {
  // The chain is in this process: no connection keeps it running.
  running = setInterval(() => {}, 1_000);
  chain = await createDevChain();
  [account] = await chain.request({ method: 'eth_accounts' });
  const writer = createWalletClient({ chain: local, transport: custom(chain), account });
  const hash = await writer.deployContract({ ...token, args: ['Provider', 50n] });
  address = (await chain.request({ method: 'eth_getTransactionReceipt', params: [hash] })).contractAddress;
  const { hash: genesis } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const options = { network: 'regtest', checkpoint: { number: 0, hash: genesis }, upstreams: transportTo(chain), pollSeconds: 0.1 };
  light = await createProvider({ ...options, storage: null, signer: chain });
});

after(() => {
  light?.close();
  chain?.close();
  clearInterval(running);
});

/** Runs a test with each provider. */
const each = (name, work) => {
  test(`${name}: light client`, () => work(light));
  test(`${name}: development chain`, () => work(chain));
};

each('viem names the error of a revert', async (provider) => {
  const reader = createPublicClient({ chain: local, transport: custom(provider) });
  const call = { ...token, address, functionName: 'transfer', args: [TO, 51n], account };
  for (const attempt of [reader.simulateContract(call), reader.estimateContractGas(call)]) {
    await assert.rejects(attempt, (error) => {
      const { data } = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
      assert.deepEqual([data.errorName, data.args.slice(1)], ['NotEnough', [50n, 51n]]);
      return true;
    });
  }
});

each('ethers names the error of a revert', async (provider) => {
  const signer = await new BrowserProvider(provider).getSigner();
  const contract = new Contract(address, token.abi, signer);
  await assert.rejects(contract.transfer.staticCall(TO, 51n), (error) => {
    assert.deepEqual([error.code, error.revert.name, error.revert.args[2]], ['CALL_EXCEPTION', 'NotEnough', 51n]);
    return true;
  });
});

each('ethers sends with the accounts of the provider and waits for the receipt', async (provider) => {
  const browser = new BrowserProvider(provider);
  const signer = await browser.getSigner();
  assert.equal(signer.address.toLowerCase(), account.toLowerCase());
  const contract = new Contract(address, token.abi, signer);
  const before = await contract.balanceOf(TO);
  const sent = await contract.transfer(TO, 2n, { gasPrice: await provider.request({ method: 'eth_gasPrice' }) });
  assert.equal((await sent.wait(1, 20_000)).status, 1);
  assert.equal((await contract.balanceOf(TO)) - before, 2n);
  browser.destroy();
});

each('viem sends with the accounts of the provider and sees the event', async (provider) => {
  const options = { chain: local, transport: custom(provider), pollingInterval: 50, cacheTime: 0 };
  const reader = createPublicClient(options);
  const writer = createWalletClient({ ...options, account });
  assert.deepEqual(await writer.requestAddresses(), await writer.getAddresses());
  const hash = await writer.writeContract({ ...token, address, functionName: 'transfer', args: [TO, 1n] });
  const receipt = await reader.waitForTransactionReceipt({ hash, timeout: 20_000 });
  const [event] = await reader.getContractEvents({ ...token, address, eventName: 'Transfer', fromBlock: receipt.blockNumber });
  assert.equal(event.transactionHash, hash);
  await writer.switchChain({ id: 33 });
  await assert.rejects(writer.switchChain({ id: 1 }), (error) => error.walk(({ code }) => code === 4902) !== null);
});

/** A light client without a wallet. */
async function withoutWallet() {
  const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  return createProvider({ network: 'regtest', checkpoint: { number: 0, hash }, upstreams: transportTo(chain), storage: null });
}

test('viem reports that a provider without a wallet has no accounts', async () => {
  const bare = await withoutWallet();
  const writer = createWalletClient({ chain: local, transport: custom(bare) });
  assert.deepEqual(await writer.getAddresses(), []);
  await assert.rejects(writer.requestAddresses(), (error) => error.walk(({ code }) => code === 4100) !== null);
  bare.close();
});

// Other texts are "could not coalesce error" in ethers, and of the errors of `getSigner` it keeps the code and the data only.
test('ethers says that a provider without a wallet holds no keys, and which method it does not have', async () => {
  const bare = await withoutWallet();
  const browser = new BrowserProvider(bare);
  const refusals = [
    [() => browser.getSigner(), 'eth_requestAccounts', /holds no keys: create it with the user's wallet/],
    [() => browser.send('eth_sendTransaction', [{ to: TO }]), 'eth_sendTransaction', /holds no keys: create it with the user's wallet/],
    [() => browser.send('wallet_getPermissions', []), 'wallet_getPermissions', /this provider does not have it/],
    [() => browser.send('eth_nonsense', []), 'eth_nonsense', /the package does not have it/],
  ];
  for (const [refusal, operation, words] of refusals) {
    await assert.rejects(refusal(), (error) => {
      assert.deepEqual([error.code, error.operation, error.shortMessage], ['UNSUPPORTED_OPERATION', operation, 'unsupported operation']);
      assert.match(error.message, words);
      return true;
    });
  }
  browser.destroy();
  bare.close();
});
