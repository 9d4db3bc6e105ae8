// The bundler Alto, as a program of its own, on the development chain: an account of ERC-4337 is created and used.
//
// Alto runs without its safe mode, which cannot decode any result (the last test).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createPublicClient, createWalletClient, decodeErrorResult, encodeErrorResult, encodeFunctionData, getAddress, http, parseEther } from 'viem';
import { getUserOperationHash } from 'viem/account-abstraction';
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { call, mined, MNEMONIC, post, startChain, until } from '../chain.mjs';

const require = createRequire(import.meta.url);
const artifact = (name) => require(`@account-abstraction/contracts/artifacts/${name}.json`);
const local = { ...rootstock, id: 33, name: 'regtest', testnet: true, contracts: {} };
const TO = '0x00000000000000000000000000000000000000ab';
const owner = privateKeyToAccount(generatePrivateKey());

/** The proxy through which Alto deploys its simulations; the transaction that creates it is damaged in Alto's package. */
const DEPLOYER = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
const DEPLOYER_CODE = `0x7f${'ff'.repeat(31)}e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3`;

let chain, reader, entryPoint, factory, sender, alto, bundler;

/** A port that nothing listens at. */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function startAlto() {
  const port = await freePort();
  const key = (index) => `0x${Buffer.from(mnemonicToAccount(MNEMONIC, { addressIndex: index }).getHdKey().privateKey).toString('hex')}`;
  const program = fileURLToPath(new URL('./node_modules/@pimlico/alto/esm/cli/alto.js', import.meta.url));
  const flags = {
    'entrypoints': entryPoint,
    'executor-private-keys': key(1),
    'utility-private-key': key(2),
    'rpc-url': chain.url,
    'port': port,
    'safe-mode': false,
    'legacy-transactions': true,
    'log-level': 'warn',
    'min-executor-balance': '0',
    // The code that Alto puts in place of the entry point has another address of its helper in it.
    'code-override-support': false,
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const child = spawn(process.execPath, [program, 'run', ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return { url: `http://127.0.0.1:${port}`, child, stop: () => (child.kill(), ended) };
}

before(async () => {
  chain = await startChain('--log-level', 'warn');
  const options = { chain: local, transport: http(chain.url), pollingInterval: 50, cacheTime: 0 };
  reader = createPublicClient(options);
  const writer = createWalletClient({ ...options, account: mnemonicToAccount(MNEMONIC) });
  const deploy = async (name, args) => {
    const { abi, bytecode } = artifact(name);
    const { status, contractAddress } = await mined(reader, await writer.deployContract({ abi, bytecode, args }));
    assert.equal(status, 'success', name);
    return contractAddress;
  };
  await call(chain.url, 'anvil_setCode', DEPLOYER, DEPLOYER_CODE);
  entryPoint = await deploy('EntryPoint', []);
  factory = await deploy('SimpleAccountFactory', [entryPoint]);
  const { abi } = artifact('SimpleAccountFactory');
  sender = await reader.readContract({ abi, address: factory, functionName: 'getAddress', args: [owner.address, 0n] });
  await mined(reader, await writer.sendTransaction({ to: sender, value: parseEther('1') }));
  alto = await startAlto();
  bundler = async (method, ...params) => {
    const { body } = await post(alto.url, method, ...params);
    if (body.error) throw new Error(`${method}: ${body.error.message}`);
    return body.result;
  };
  const ready = () => fetch(`${alto.url}/health`).then(({ ok }) => ok, () => alto.child.exitCode !== null);
  await until(ready, 'Alto listens', 60_000);
  assert.equal(alto.child.exitCode, null, 'Alto runs');
});

after(async () => {
  await alto?.stop();
  await chain?.stop();
});

const hex = (number) => `0x${number.toString(16)}`;

/** Sends a transfer by the account; returns the bundler's receipt. */
async function transfer(value) {
  const { abi } = artifact('SimpleAccount');
  const entry = artifact('EntryPoint').abi;
  const nonce = await reader.readContract({ abi: entry, address: entryPoint, functionName: 'getNonce', args: [sender, 0n] });
  const price = await reader.getGasPrice();
  const factoryData = encodeFunctionData({ abi: artifact('SimpleAccountFactory').abi, functionName: 'createAccount', args: [owner.address, 0n] });
  const deployed = (await reader.getCode({ address: sender })) !== undefined;
  const operation = {
    sender,
    nonce: hex(nonce),
    ...(deployed ? {} : { factory, factoryData }),
    callData: encodeFunctionData({ abi, functionName: 'execute', args: [TO, value, '0x'] }),
    maxFeePerGas: hex(price * 2n),
    maxPriorityFeePerGas: hex(price * 2n),
    callGasLimit: '0x0',
    verificationGasLimit: '0x0',
    preVerificationGas: '0x0',
  };
  const dummy = await owner.signMessage({ message: 'estimate' });
  const gas = await bundler('eth_estimateUserOperationGas', { ...operation, signature: dummy }, entryPoint);
  const whole = { ...operation, ...gas };
  const userOperation = Object.fromEntries(Object.entries(whole).map(([name, value]) => [name, /Gas|nonce|Fee/.test(name) ? BigInt(value) : value]));
  const hash = getUserOperationHash({ chainId: 33, entryPointAddress: entryPoint, entryPointVersion: '0.7', userOperation });
  const signature = await owner.signMessage({ message: { raw: hash } });
  assert.equal(await bundler('eth_sendUserOperation', { ...whole, signature }, entryPoint), hash);
  let receipt;
  await until(async () => (receipt = await bundler('eth_getUserOperationReceipt', hash)) !== null, 'the operation is mined', 30_000);
  return receipt;
}

test('Alto knows the chain and the entry point', async () => {
  assert.equal(await bundler('eth_chainId'), '0x21');
  assert.deepEqual(await bundler('eth_supportedEntryPoints'), [getAddress(entryPoint)]);
});

test('an operation creates the account, and the next one uses it', async () => {
  for (const [count, value] of [3n, 4n].entries()) {
    const before = await reader.getBalance({ address: TO });
    const receipt = await transfer(value);
    assert.equal(receipt.success, true);
    assert.equal(await reader.getBalance({ address: TO }), before + value);
    const { status, to } = await call(chain.url, 'eth_getTransactionReceipt', receipt.receipt.transactionHash);
    assert.deepEqual([status, to.toLowerCase()], ['0x1', entryPoint.toLowerCase()]);
    assert.equal(BigInt(receipt.nonce), BigInt(count));
  }
  assert.notEqual(await reader.getCode({ address: sender }), undefined);
});

test('an operation with a wrong signature is refused', async () => {
  const callData = encodeFunctionData({ abi: artifact('SimpleAccount').abi, functionName: 'execute', args: [TO, 1n, '0x'] });
  const signature = await privateKeyToAccount(generatePrivateKey()).signMessage({ message: 'other' });
  const price = hex((await reader.getGasPrice()) * 2n);
  const operation = { sender, nonce: '0x2', callData, signature, callGasLimit: '0xffff', verificationGasLimit: '0xfffff', preVerificationGas: '0xfffff', maxFeePerGas: price, maxPriorityFeePerGas: price };
  await assert.rejects(bundler('eth_sendUserOperation', operation, entryPoint), /signature|AA24/i);
});

// docs/tools.md says why Alto's safe mode works with no node. A version that decodes its results must be tried with safe mode.
test('the interface by which safe mode decodes the last call has no errors', async () => {
  const { pimlicoSimulationsAbi } = await import('./node_modules/@pimlico/alto/esm/types/contracts/PimlicoSimulations.js');
  assert.deepEqual(pimlicoSimulationsAbi.filter(({ type }) => type === 'error'), []);
  const entry = artifact('EntryPoint').abi;
  const data = encodeErrorResult({ abi: entry, errorName: 'DelegateAndRevert', args: [true, '0x'] });
  assert.equal(data.slice(0, 10), '0x99410554');
  assert.throws(() => decodeErrorResult({ abi: pimlicoSimulationsAbi, data }), /0x99410554/);
});
