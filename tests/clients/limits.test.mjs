// The limits and refusals of docs/errors.md ("Errors that programs parse"), each provoked and read by the libraries' own
// matchers: viem and ethers by their interface, the others by what their sources look for.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HDNodeWallet, JsonRpcProvider } from 'ethers';
import { createPublicClient, createWalletClient, http } from 'viem';
import {
  InsufficientFundsError,
  InvalidInputRpcError,
  LimitExceededRpcError,
  NonceTooHighError,
  NonceTooLowError,
  TransactionTypeNotSupportedError,
} from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { rootstock } from 'viem/chains';
import { call, MNEMONIC, post, startChain } from './chain.mjs';
import { startKeyed } from './keys.mjs';
import { alloyRetries, graphNodeReverts, safeException } from './matchers.mjs';
import { startProgram } from './program.mjs';

const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const TO = '0x00000000000000000000000000000000000000aa';
const POOR = mnemonicToAccount(MNEMONIC, { addressIndex: 99 });
const SENDER = 3;

/** The chain, and a light client that passes what the chain refuses on. */
const urls = {};
const stops = [];

before(async () => {
  const chain = await startChain('--block-time', 'manual', '--call-gas-cap', '1000000000000', '--history', '10', '--log-level', 'warn');
  stops.push(() => chain.stop());
  urls['development chain'] = chain.url;
  const { hash } = await call(chain.url, 'eth_getBlockByNumber', '0x0', false);
  const flags = ['--network', 'regtest', '--upstream', chain.url, '--checkpoint', `0:${hash}`, '--data-dir', 'none', '--log-level', 'warn'];
  const light = await startProgram(process.env.ROOTLIGHT, ['light', '--http-port', '0', '--ws-port', '0', ...flags]);
  stops.unshift(() => light.stop());
  urls['light client'] = light.url;
  // A transaction that waits: others replace it or come after it.
  const waiting = await account().signTransaction({ ...usual, nonce: 0, gasPrice: 100_000_000n });
  await call(chain.url, 'eth_sendRawTransaction', waiting);
  // An account whose first nonce is used.
  const used = await account(SENDER + 1).signTransaction({ ...usual, nonce: 0 });
  await call(chain.url, 'eth_sendRawTransaction', used);
  await call(chain.url, 'evm_mine');
  await call(chain.url, 'eth_sendRawTransaction', await account().signTransaction({ ...usual, nonce: 1, gasPrice: 100_000_000n }));
  await call(chain.url, 'anvil_setMinGasPrice', '0x64');
});

after(async () => {
  for (const stop of stops) await stop();
});

const account = (index = SENDER) => mnemonicToAccount(MNEMONIC, { addressIndex: index });
const usual = { to: TO, value: 1n, gas: 30_000n, gasPrice: 60_000_000n, type: 'legacy', chainId: 33 };

/**
 * Refused transactions: what is sent, viem's class, ethers' code and the Safe service's exception. `undefined` stands for a
 * library that has no words for the reason.
 */
const REFUSED = {
  'nonce too low': { index: SENDER + 1, nonce: 0, viem: NonceTooLowError, ethers: 'NONCE_EXPIRED', safe: 'NonceTooLow' },
  'nonce too high': { index: SENDER + 1, nonce: 50_000, viem: NonceTooHighError, safe: 'NonceTooHigh' },
  'insufficient funds': { index: SENDER + 2, nonce: 0, value: 10n ** 30n, viem: InsufficientFundsError, ethers: 'INSUFFICIENT_FUNDS', safe: 'InsufficientFunds' },
  'a transaction with a type': {
    index: SENDER + 2, nonce: 0, type: 'eip1559', gasPrice: undefined, maxFeePerGas: 60_000_000n, maxPriorityFeePerGas: 0n,
    viem: TransactionTypeNotSupportedError,
  },
  // The reference node's words for the others are not among those of Ethereum's nodes: libraries show the text.
  'an account that does not exist': { index: 99, nonce: 0 },
  'underpriced replacement': { nonce: 1, gasPrice: 101_000_000n },
  // A light client sends a transaction again that its upstream has already.
  'already known': { nonce: 1, gasPrice: 100_000_000n, sentAgain: true },
  'gas price below the minimum': { index: SENDER + 2, nonce: 0, gasPrice: 1n },
  'gas below the intrinsic gas': { index: SENDER + 2, nonce: 0, gas: 20_000n },
  'gas above the block': { index: SENDER + 2, nonce: 0, gas: 10n ** 12n },
};

for (const place of ['development chain', 'light client']) {
  describe(`transactions that the ${place} refuses`, () => {
    for (const [name, { index = SENDER, viem, ethers, safe, sentAgain, ...fields }] of Object.entries(REFUSED)) {
      test(name, { skip: sentAgain && place === 'light client' }, async () => {
        const sender = account(index);
        const raw = await sender.signTransaction({ ...usual, ...fields });
        const { body } = await post(urls[place], 'eth_sendRawTransaction', raw);
        assert.ok(body.error, 'the transaction is accepted');
        assert.equal(safeException(body.error), safe, body.error.message);
        assert.equal(alloyRetries(body.error), false);

        const writer = createWalletClient({ chain: local, transport: http(urls[place], { retryCount: 0 }), account: sender });
        const failure = await writer.sendTransaction({ ...usual, ...fields }).then(() => assert.fail(), (error) => error);
        if (viem) assert.ok(failure.walk((cause) => cause instanceof viem), `${failure.message}`);
        else assert.ok(failure.message.includes(body.error.message), failure.message);

        const provider = new JsonRpcProvider(urls[place], 33, { staticNetwork: true });
        const sent = provider.send('eth_sendRawTransaction', [raw]);
        await assert.rejects(sent, ({ code }) => code === (ethers ?? 'UNKNOWN_ERROR'));
        provider.destroy();
      });
    }
  });
}

const client = () => createPublicClient({ chain: local, transport: http(urls['development chain'], { retryCount: 0 }) });
const failing = (code) => [{ to: TO, gas: '0x7a1200' }, 'latest', { [TO]: { code } }];

// graph-node goes on after these, and stops at an error that it does not know.
for (const [name, code] of Object.entries({
  'out of gas': '0x5b600056',
  'an invalid opcode': '0xfe',
  'a wrong jump': '0x600056',
  'an empty stack': '0x01',
  'a full stack': '0x5b58600056',
  'a revert': '0x60006000fd',
})) {
  test(`graph-node takes a call for failed: ${name}`, async () => {
    const { body } = await post(urls['development chain'], 'eth_call', ...failing(code));
    assert.ok(graphNodeReverts(body.error), JSON.stringify(body));
  });
}

test('the gas that an estimate may need', async () => {
  const { body } = await post(urls['development chain'], 'eth_estimateGas', ...failing('0x5b600056'));
  assert.match(body.error.message, /gas required exceeds allowance/);
  assert.equal(alloyRetries(body.error), false);
});

test('a call that takes too long is not sent again', async () => {
  const [request, ...rest] = failing('0x5b600056');
  const { body } = await post(urls['development chain'], 'eth_call', { ...request, gas: '0xffffffffff' }, ...rest);
  assert.equal(body.error.code, -32011);
  assert.match(body.error.message, /request timed out/);
  assert.equal(alloyRetries(body.error), false);
});

test('viem installs a filter again that is gone', async () => {
  const error = await client().request({ method: 'eth_getFilterChanges', params: ['0x99'] }).catch((error) => error);
  assert.ok(error.walk((cause) => cause instanceof InvalidInputRpcError), error.message);
});

test('a block that does not exist', async () => {
  const { body } = await post(urls['development chain'], 'eth_call', { to: TO }, '0x999');
  assert.match(body.error.message, /Invalid block number/);
  await assert.rejects(client().getBlock({ blockNumber: 0x999n }), { name: 'BlockNotFoundError' });
});

test('a state that is not kept', async () => {
  await call(urls['development chain'], 'hardhat_mine', '0x20');
  const { body } = await post(urls['development chain'], 'eth_call', { to: TO, data: '0x00' }, '0x1');
  // hardhat and foundry look for it when they fork.
  assert.match(body.error.message, /missing trie node/);
  assert.equal(alloyRetries(body.error), false);
});

test('a batch and a body beyond the limits', async () => {
  const many = JSON.stringify(Array.from({ length: 1_001 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'eth_chainId', params: [] })));
  const send = (body) => fetch(urls['development chain'], { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { error } = await (await send(many)).json();
  assert.deepEqual([error.code, alloyRetries(error)], [-32600, false]);
  const long = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'web3_sha3', params: [`0x${'00'.repeat(3_000_000)}`] });
  const refused = await send(long);
  assert.equal(refused.status, 413);
  assert.equal((await refused.json()).error.code, LimitExceededRpcError.code);
});

describe('the requests per second of a key', () => {
  let keyed;
  before(async () => (keyed = await startKeyed()));
  after(() => keyed?.stop());

  test('viem waits and asks again', async () => {
    const { http: url } = keyed.create('--rps', '1', '--burst', '1');
    const reader = createPublicClient({ chain: local, transport: http(url), cacheTime: 0 });
    for (let count = 0; count < 3; count++) assert.equal(await reader.getBlockNumber(), 0n);
  });

  test('the error without another try', async () => {
    const { http: url } = keyed.create('--per-day', '1');
    await call(url, 'eth_chainId');
    const { status, body } = await post(url, 'eth_chainId');
    assert.deepEqual([status, body.error.code, body.error.message], [429, -32005, 'Daily quota exceeded']);
    assert.ok(alloyRetries(body.error));
  });
});
