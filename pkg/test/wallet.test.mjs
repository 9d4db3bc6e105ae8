// Accounts and signatures: with the user's wallet, without one, and on a chain that holds keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDevChain } from '../dev.js';
import { withLight } from './lib/light-client.mjs';
import { until } from './lib/wait.mjs';

const ACCOUNT = `0x${'11'.repeat(20)}`;

/** A wallet that records its calls, on the chain of the tests unless told otherwise. */
function fakeWallet({ chainId = '0x21', fail } = {}) {
  const listeners = new Map();
  const wallet = {
    calls: [],
    chainId,
    async request({ method, params }) {
      wallet.calls.push({ method, params });
      if (method === 'eth_chainId') return wallet.chainId;
      if (fail) throw fail;
      return method === 'eth_accounts' || method === 'eth_requestAccounts' ? [ACCOUNT] : `answer to ${method}`;
    },
    on: (event, listener) => void listeners.set(listener, event),
    removeListener: (event, listener) => void (listeners.get(listener) === event && listeners.delete(listener)),
    tell: (event, value) => listeners.forEach((of, listener) => of === event && listener(value)),
    select: (accounts) => wallet.tell('accountsChanged', accounts),
    listeners,
  };
  return wallet;
}

/** Methods that make a wallet sign or send. */
const SIGNING = [
  'eth_sendTransaction', 'eth_signTransaction', 'eth_sign', 'eth_signTypedData_v4', 'eth_sendUserOperation', 'personal_sign', 'personal_sendTransaction',
  'personal_signTransaction', 'wallet_sendTransaction', 'wallet_sendCalls', 'wallet_sendPreparedCalls', 'wallet_signIntent',
];

const code = (promise) => promise.then((value) => assert.fail(`there is an answer: ${JSON.stringify(value)}`), (error) => error.code);

test('without a wallet there are no accounts, and signing is refused with the codes of EIP-1193', () =>
  withLight({}, async ({ ask }) => {
    assert.deepEqual(await ask('eth_accounts'), []);
    for (const method of ['eth_requestAccounts', ...SIGNING]) {
      assert.equal(await code(ask(method)), 4100, method);
    }
    for (const method of ['wallet_getPermissions', 'wallet_watchAsset', 'personal_listAccounts']) assert.equal(await code(ask(method)), 4200, method);
    // Libraries try methods that nodes may lack, and go on when this code tells them so.
    for (const method of ['eth_maxPriorityFeePerGas', 'eth_fillTransaction']) assert.equal(await code(ask(method)), -32601, method);
  }));

test('a switch to the provider\'s own chain succeeds, and one to another chain is refused', () =>
  withLight({}, async ({ ask }) => {
    for (const chainId of ['0x21', '0x021']) assert.equal(await ask('wallet_switchEthereumChain', { chainId }), null);
    assert.equal(await code(ask('wallet_switchEthereumChain', { chainId: '0x1' })), 4902);
    assert.equal(await code(ask('wallet_addEthereumChain', { chainId: '0x1', chainName: 'Other' })), 4902);
    for (const chainId of [undefined, '', 'main', {}]) assert.equal(await code(ask('wallet_switchEthereumChain', { chainId })), -32602);
  }));

test('account and signing methods go to the wallet, and reads are proven here', async () => {
  const signer = fakeWallet();
  await withLight({ signer }, async ({ ask, chain }) => {
    assert.deepEqual(await ask('eth_requestAccounts'), [ACCOUNT]);
    assert.deepEqual(await ask('eth_accounts'), [ACCOUNT]);
    assert.equal(await ask('personal_sign', '0x12', ACCOUNT), 'answer to personal_sign');
    assert.equal(await ask('wallet_watchAsset', { type: 'ERC20' }), 'answer to wallet_watchAsset');
    const [rich] = await chain.request({ method: 'eth_accounts' });
    assert.equal(await ask('eth_getBalance', rich, 'latest'), '0x21e19e0c9bab2400000');
    assert.equal(await ask('eth_chainId'), '0x21');
    const forwarded = signer.calls.map(({ method }) => method);
    assert.deepEqual(forwarded, ['eth_requestAccounts', 'eth_accounts', 'eth_chainId', 'personal_sign', 'eth_chainId', 'wallet_watchAsset']);
  });
});

test('a transaction names the chain that the wallet must sign for', async () => {
  const signer = fakeWallet();
  await withLight({ signer }, async ({ ask }) => {
    const transaction = Object.freeze({ from: ACCOUNT, to: ACCOUNT });
    await ask('eth_sendTransaction', transaction);
    assert.deepEqual(signer.calls.at(-1).params, [{ ...transaction, chainId: '0x21' }]);
    await ask('eth_sendTransaction', { ...transaction, chainId: 33 });
    assert.equal(signer.calls.at(-1).params[0].chainId, 33);
    const before = signer.calls.filter(({ method }) => method === 'eth_sendTransaction').length;
    assert.equal(await code(ask('eth_sendTransaction', { ...transaction, chainId: '0x1' })), 4901);
    assert.equal(signer.calls.filter(({ method }) => method === 'eth_sendTransaction').length, before);
  });
});

test('a wallet on another chain signs nothing, and may switch', async () => {
  const signer = fakeWallet({ chainId: '0x1' });
  await withLight({ signer }, async ({ ask }) => {
    for (const method of SIGNING) assert.equal(await code(ask(method, {})), 4901, method);
    assert.ok(signer.calls.every(({ method }) => method === 'eth_chainId'));
    await ask('wallet_switchEthereumChain', { chainId: '0x21' });
    assert.deepEqual(signer.calls.at(-1), { method: 'wallet_switchEthereumChain', params: [{ chainId: '0x21' }] });
    // Some wallets return a plain number.
    signer.chainId = 33;
    for (const method of SIGNING) assert.equal(await ask(method, {}), `answer to ${method}`);
  });
});

test('a transaction that is signed already needs no wallet', async () => {
  const signer = fakeWallet({ chainId: '0x1' });
  await withLight({ signer }, async ({ ask }) => {
    assert.equal(await code(ask('eth_sendRawTransaction', '0x00')), -32602);
    assert.deepEqual(signer.calls, []);
  });
});

test('calls that a wallet sends together name the chain', async () => {
  const signer = fakeWallet();
  await withLight({ signer }, async ({ ask }) => {
    for (const method of ['wallet_sendCalls', 'wallet_sendPreparedCalls', 'wallet_sendTransaction', 'personal_sendTransaction']) {
      await ask(method, { from: ACCOUNT }, 'more');
      assert.deepEqual(signer.calls.at(-1), { method, params: [{ from: ACCOUNT, chainId: '0x21' }, 'more'] });
      assert.equal(await code(ask(method, { chainId: '0x1' })), 4901, method);
      assert.equal(signer.calls.at(-1).method, 'eth_chainId');
    }
  });
});

test('errors of the wallet arrive unchanged', async () => {
  const fail = Object.assign(new Error('the user said no'), { code: 4001, data: { reason: 'no' } });
  await withLight({ signer: fakeWallet({ fail }) }, async ({ ask }) => {
    for (const method of ['eth_requestAccounts', 'eth_sendTransaction']) {
      assert.equal(await ask(method, {}).catch((error) => error), fail);
    }
  });
});

test('answers of the wallet are marked as its own, and those of the provider in its place as local', async () => {
  const methods = ['eth_accounts', 'eth_requestAccounts', 'eth_decrypt', 'eth_getEncryptionPublicKey', 'personal_sign', 'wallet_getPermissions'];
  const collected = (light) => {
    const told = [];
    light.on('verification', ({ method, level, depth }) => told.push([method, level, depth]));
    return (count) => until(() => told.length >= count && told, `${count} events`);
  };
  await withLight({ signer: fakeWallet() }, async ({ light }) => {
    const events = collected(light);
    for (const method of methods) assert.equal((await light.requestWithLevel({ method })).level, 'wallet', method);
    assert.deepEqual(await events(methods.length), methods.map((method) => [method, 'wallet', null]));
  });
  await withLight({}, async ({ light }) => {
    const events = collected(light);
    const call = { method: 'wallet_switchEthereumChain', params: [{ chainId: '0x21' }] };
    assert.deepEqual(await light.requestWithLevel(call), { result: null });
    await light.request({ method: 'eth_accounts' });
    assert.deepEqual(await events(2), [[call.method, 'local', null], ['eth_accounts', 'local', null]]);
  });
});

test('an error of the wallet is not reported as a refused proof', async () => {
  // In wallets this code means that a dialogue is open already.
  const fail = Object.assign(new Error('already pending'), { code: -32002 });
  await withLight({ signer: fakeWallet({ fail }) }, async ({ light, ask }) => {
    const told = [];
    light.on('verification', ({ method }) => told.push(method));
    assert.equal(await code(ask('eth_requestAccounts')), -32002);
    await ask('eth_chainId');
    await until(() => told.length > 0, 'an event');
    assert.deepEqual(told, ['eth_chainId']);
  });
});

test('a closed provider answers nothing in place of the wallet, nor asks it', async () => {
  for (const signer of [undefined, fakeWallet()]) {
    await withLight({ signer }, async ({ light, ask }) => {
      light.close();
      for (const method of ['eth_accounts', 'eth_requestAccounts', 'wallet_getPermissions', 'eth_sendTransaction']) assert.equal(await code(ask(method)), 4900, method);
      assert.equal(await code(ask('wallet_switchEthereumChain', { chainId: '0x21' })), 4900);
    });
    assert.deepEqual(signer?.calls ?? [], []);
  }
});

test('changes of the wallet\'s accounts are passed on until the provider is closed', async () => {
  const signer = fakeWallet();
  const told = [];
  await withLight({ signer }, async ({ light }) => {
    light.on('accountsChanged', (accounts) => told.push(accounts));
    signer.select([ACCOUNT]);
    signer.select([]);
    assert.deepEqual(told, [[ACCOUNT], []]);
  });
  assert.equal(signer.listeners.size, 0);
});

test('a wallet that leaves the chain is an event of its own, since the provider stays on its chain', async () => {
  const signer = fakeWallet();
  await withLight({ signer }, async ({ light, ask }) => {
    const told = [];
    light.on('message', (event) => told.push(event));
    light.on('chainChanged', (chainId) => told.push(chainId));
    for (const chainId of ['0x1', 33, 'main']) signer.tell('chainChanged', chainId);
    await until(() => told.length === 3, 'three events');
    const event = (chainId, signs) => ({ type: 'rootlight_walletChain', data: { chainId, signs } });
    assert.deepEqual(told, [event('0x1', false), event(33, true), event('main', false)]);
    assert.equal(await ask('eth_chainId'), '0x21');
  });
  assert.equal(signer.listeners.size, 0);
});

test('a development chain signs with its own accounts', async () => {
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const accounts = await ask('eth_requestAccounts');
  assert.deepEqual(accounts, await ask('eth_accounts'));
  assert.equal(await ask('personal_sign', '0x1234', accounts[0]), await ask('eth_sign', accounts[0], '0x1234'));
  assert.equal(await ask('wallet_switchEthereumChain', { chainId: '0x21' }), null);
  assert.equal(await code(ask('wallet_switchEthereumChain', { chainId: '0x1e' })), 4902);
  const typed = { types: { EIP712Domain: [], Note: [{ name: 'text', type: 'string' }] }, primaryType: 'Note', domain: {}, message: { text: 'a' } };
  const signature = await ask('eth_signTypedData_v4', accounts[0], JSON.stringify(typed));
  assert.equal(signature, await ask('eth_signTypedData', accounts[0], typed));
  assert.match(signature, /^0x[0-9a-f]{128}1[bc]$/);
  assert.equal(await code(ask('eth_signTypedData_v4', accounts[0], { ...typed, primaryType: 'Other' })), -32602);
  for (const method of ['personal_ecRecover', 'wallet_getPermissions', 'wallet_sendCalls']) assert.equal(await code(ask(method)), 4200, method);
  chain.close();
});

test('a transaction without a gas limit gets an estimate from a development chain, and one that would revert is refused', async () => {
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const [from] = await ask('eth_accounts');
  // Stores 40 values: more gas than the default limit.
  const data = `0x${Array.from({ length: 40 }, (_, slot) => `6001${`60${(slot + 1).toString(16).padStart(2, '0')}`}55`).join('')}`;
  const receipt = await ask('eth_getTransactionReceipt', await ask('eth_sendTransaction', { from, data }));
  assert.equal(receipt.status, '0x1');
  assert.ok(Number(receipt.gasUsed) > 800_000);
  const reverts = { from, data: '0x60006000fd' };
  assert.equal(await code(ask('eth_sendTransaction', reverts)), 3);
  const mined = await ask('eth_sendTransaction', { ...reverts, gas: '0x30000' });
  assert.equal((await ask('eth_getTransactionReceipt', mined)).status, '0x0');
  chain.close();
});

test('addresses are accepted with the checksum of EIP-55, with that of EIP-1191, and without one', () =>
  withLight({}, async ({ ask }) => {
    // The same address, as wallets of Ethereum, of Rootstock mainnet and of Rootstock testnet write it.
    for (const address of [
      '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
      '0x5aaEB6053f3e94c9b9A09f33669435E7ef1bEAeD',
      '0x5aAeb6053F3e94c9b9A09F33669435E7EF1BEaEd',
      '0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED',
    ]) {
      assert.equal(await ask('eth_getBalance', address, 'latest'), '0x0');
    }
  }));
