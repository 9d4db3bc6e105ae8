// Which chains a request to the user's wallet names, in every form of parameters. Needs no module: the client is a function.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { withWallet } from '../wallet.js';

const ACCOUNT = `0x${'11'.repeat(20)}`;
const SERVED = '0x1e';

/** Methods that sign or send, and others that act on the wallet's chain. */
const BOUND = [
  'eth_sendTransaction', 'eth_sendTransactionSync', 'eth_signTransaction', 'eth_sign', 'eth_signTypedData', 'eth_signTypedData_v1', 'eth_signTypedData_v3',
  'eth_signTypedData_v4', 'eth_sendUserOperation', 'personal_sign', 'personal_sendTransaction', 'personal_signTransaction', 'wallet_sendTransaction',
  'wallet_sendCalls', 'wallet_sendPreparedCalls', 'wallet_signIntent', 'wallet_prepareCalls', 'wallet_watchAsset', 'wallet_grantPermissions',
  'wallet_invokeMethod', 'wallet_invokeSnap', 'wallet_upgradeAccount', 'wallet_createSession', 'wallet_connect',
];

/** Methods about accounts, permissions and earlier requests. */
const FREE = [
  'eth_accounts', 'eth_requestAccounts', 'eth_decrypt', 'eth_getEncryptionPublicKey', 'personal_ecRecover', 'personal_listAccounts', 'wallet_getPermissions',
  'wallet_requestPermissions', 'wallet_revokePermissions', 'wallet_getCapabilities', 'wallet_getCallsStatus', 'wallet_showCallsStatus',
];

const SWITCHES = ['wallet_switchEthereumChain', 'wallet_addEthereumChain'];

const typed = (chainId) => ({ types: { EIP712Domain: [] }, primaryType: 'A', domain: { name: 'a', chainId }, message: { chainId: 5, a: 1 } });

/** Every form in which a request names a chain. */
const FORMS = {
  'a member of a list': (chainId) => [{ from: ACCOUNT, chainId }],
  'an object': (chainId) => ({ from: ACCOUNT, chainId }),
  'a later member of a list': (chainId) => [ACCOUNT, { chainId }],
  'nested calls': (chainId) => [{ calls: [{ to: ACCOUNT }, { to: ACCOUNT, chainId }] }],
  'nested calls of an object': (chainId) => ({ calls: [{ to: ACCOUNT, chainId }] }),
  'an authorization': (chainId) => [{ to: ACCOUNT, authorizationList: [{ chainId, address: ACCOUNT }] }],
  'typed data': (chainId) => [ACCOUNT, typed(chainId)],
  'a list of chains': (chainId) => [{ address: ACCOUNT, chainIds: [chainId] }],
  'a list with the provider\'s own chain': (chainId) => ({ chain_ids: [SERVED, 30, chainId] }),
  'a list of one, without the list': (chainId) => [{ nested: [{ chainIds: chainId }] }],
  'chains': (chainId) => [{ capabilities: { chains: [{ id: 7, chainId }] } }],
  'chains, of plain ids': (chainId) => [ACCOUNT, { chains: [null, chainId] }],
  'a list that has another meaning elsewhere': (chainId) => [[chainId].map((id) => [id, id])].map((list) => ({ places: list[0], chainIds: list[0] })),
  'typed data in an object': (chainId) => ({ address: ACCOUNT, data: typed(chainId) }),
};

/** Forms as texts, which `eth_sign` and `personal_sign` sign as they are. */
const TEXTS = {
  'typed data as JSON': (chainId) => [ACCOUNT, JSON.stringify(typed(chainId))],
  'typed data as JSON, in an object': (chainId) => ({ address: ACCOUNT, data: JSON.stringify(typed(chainId)) }),
  'a transaction as JSON': (chainId) => [JSON.stringify({ to: ACCOUNT, chainId })],
  'a scope (CAIP-2)': (chainId) => [{ scope: `eip155:${Number(chainId)}`, request: { method: 'eth_blockNumber' } }],
  'scopes in a list of chains': (chainId) => [{ namespaces: { eip155: { chains: [`eip155:${SERVED}`, `eip155:${Number(chainId)}`] } } }],
  'a list of chains as JSON': (chainId) => [JSON.stringify({ chainIds: [SERVED, chainId] })],
  'scopes (CAIP-25)': (chainId) => [{ requiredScopes: { [`eip155:${Number(chainId)}`]: { methods: [] } } }],
};

/** A wallet that records what it is asked, and the provider in front of it. */
function setup({ chainId = SERVED } = {}) {
  const calls = [];
  const wallet = {
    chainId,
    async request({ method, params }) {
      if (method === 'eth_chainId') return wallet.chainId;
      calls.push({ method, params });
      return 'done';
    },
    on: (event, listener) => void (event === 'chainChanged' && (wallet.tell = listener)),
  };
  const inner = async ({ method }) => (assert.equal(method, 'eth_chainId'), { result: SERVED });
  const { requestWithLevel } = withWallet(inner, { signer: wallet, holdsKeys: false, emit() {}, reason: () => undefined });
  return { wallet, calls, ask: (method, params) => requestWithLevel({ method, params }) };
}

const code = (promise) => promise.then(() => 'answered', (error) => error.code);

const formsFor = (method) => Object.entries(/^(?:eth|personal)_sign$/.test(method) ? FORMS : { ...FORMS, ...TEXTS });

test('a request that names another chain in any form does not reach the wallet', async () => {
  for (const method of [...BOUND, ...FREE]) {
    for (const [form, params] of formsFor(method)) {
      const { calls, ask } = setup();
      for (const other of ['0x1', 1, '1', '0x0']) assert.equal(await code(ask(method, params(other))), 4901, `${method}: ${form} ${other}`);
      assert.deepEqual(calls, []);
      for (const same of [SERVED, 30, '30']) assert.equal(await code(ask(method, params(same))), 'answered', `${method}: ${form} ${same}`);
      assert.equal(calls.length, 3);
    }
  }
});

test('a switch in any form to another chain does not reach the wallet', async () => {
  for (const method of SWITCHES) {
    for (const [form, params] of Object.entries({ list: (chainId) => [{ chainId }], object: (chainId) => ({ chainId }), two: (chainId) => [{ chainId: SERVED }, { chainId }] })) {
      const { calls, ask } = setup({ chainId: '0x1' });
      assert.equal(await code(ask(method, params('0x1'))), 4902, `${method}: ${form}`);
      assert.equal(await code(ask(method, params('main'))), -32602, `${method}: ${form}`);
      assert.deepEqual(calls, []);
      assert.equal(await code(ask(method, params(SERVED))), 'answered', `${method}: ${form}`);
    }
    assert.equal(await code(setup().ask(method, [])), -32602);
  }
});

test('a chain that is not a number is another one', async () => {
  const deep = Array.from({ length: 40 }).reduce((inner) => [inner], { chainId: SERVED });
  for (const method of BOUND) {
    for (const chainId of ['main', '', {}, [30], true, 30.5]) assert.equal(await code(setup().ask(method, [{ chainId }])), 4901, `${method} ${chainId}`);
    assert.equal(await code(setup().ask(method, deep)), 4901, method);
  }
});

test('a list of chains that are not numbers is of other ones, and chains of other namespaces are up to the wallet', async () => {
  for (const method of BOUND) {
    for (const chainIds of [['main'], [''], [[30]], [true], [30.5], 'main', [SERVED, {}, 'x']]) assert.equal(await code(setup().ask(method, [{ chainIds }])), 4901, `${method} ${chainIds}`);
    for (const chains of [[], undefined, null, {}, [undefined], ['solana:mainnet', 'bip122:0']]) assert.equal(await code(setup().ask(method, [{ chains }])), 'answered', `${method} ${chains}`);
  }
});

test('parts that a request holds many times, and parts that hold themselves, are read once', async () => {
  /** Parameters that hold their last part 2^26 times. */
  const shared = (last, [depth, wrap]) => Array.from({ length: depth }).reduce((part) => wrap(part), last);
  const wraps = [[26, (part) => [part, part]], [26, (part) => ({ a: part, b: part })], [13, (part) => ({ chains: [part, part, part, part] })]];
  const [itself, text] = [{ chainId: SERVED }, JSON.stringify({ chainId: '0x1' })];
  itself.self = [itself, { itself }];
  for (const wrap of wraps) {
    assert.equal(await code(setup().ask('personal_sign', shared({ chainId: SERVED }, wrap))), 'answered');
    assert.equal(await code(setup().ask('personal_sign', shared({ chainId: '0x1' }, wrap))), 4901);
    assert.equal(await code(setup().ask('eth_signTypedData_v4', shared({ data: [text, text] }, wrap))), 4901);
  }
  assert.equal(await code(setup().ask('eth_sendTransaction', [itself])), 'answered');
  itself.chainId = 1;
  assert.equal(await code(setup().ask('eth_sendTransaction', [{ itself }])), 4901);
});

test('methods that act on the wallet\'s chain wait until it is the provider\'s, and others do not', async () => {
  const { wallet, calls, ask } = setup({ chainId: '0x1' });
  const forms = [undefined, [], {}, [{}], [ACCOUNT, '0x12'], { from: ACCOUNT }];
  for (const params of forms) for (const method of BOUND) assert.equal(await code(ask(method, params)), 4901, `${method} ${JSON.stringify(params)}`);
  assert.deepEqual(calls, []);
  for (const params of forms) for (const method of FREE) assert.equal(await code(ask(method, params)), 'answered', method);
  wallet.chainId = 30;
  for (const method of BOUND) assert.equal(await code(ask(method, [{}])), 'answered', method);
  // The rules refuse when the wallet has changed its chain without an event.
  wallet.chainId = '0x1';
  for (const method of BOUND) assert.equal(await code(ask(method, [{}])), 4901, method);
});

test('transactions and calls get the chain in lists and in objects, and are otherwise unchanged', async () => {
  for (const method of BOUND.filter((name) => /(?:Transaction|TransactionSync|Calls)$/.test(name))) {
    const { calls, ask } = setup();
    await ask(method, [{ from: ACCOUNT, calls: [{ to: ACCOUNT }] }, 'more']);
    await ask(method, { from: ACCOUNT });
    await ask(method, [{ chainId: 30 }]);
    const named = { from: ACCOUNT, chainId: SERVED };
    assert.deepEqual(calls.map(({ params }) => params), [[{ ...named, calls: [{ to: ACCOUNT }] }, 'more'], named, [{ chainId: 30 }]], method);
  }
});

test('the message of typed data, and a text to sign, may be about other chains', async () => {
  const { ask } = setup();
  assert.equal(await code(ask('eth_signTypedData_v4', [ACCOUNT, typed(30)])), 'answered');
  assert.equal(await code(ask('personal_sign', ['{"chainId":1}', ACCOUNT])), 'answered');
});

test('the example of an extension has the same rules', () => {
  const rules = (path) => {
    const [, text] = /\/\/ Rules of wallets: begin\n(.*)\/\/ Rules of wallets: end/s.exec(readFileSync(new URL(path, import.meta.url), 'utf8'));
    return text.split('\n').map((line) => line.trim()).join('\n');
  };
  assert.equal(rules('../../examples/extension/page.js'), rules('../chains.js'));
});

test('without a wallet, a method of wallets that the provider does not have has the code of EIP-1193', async () => {
  const absent = async () => Promise.reject(Object.assign(new Error('no such method'), { code: -32601 }));
  for (const holdsKeys of [false, true]) {
    const { requestWithLevel } = withWallet(absent, { holdsKeys, emit() {}, reason: () => undefined });
    const ask = (method) => code(requestWithLevel({ method, params: [] }));
    for (const method of ['wallet_watchAsset', 'wallet_getCapabilities', 'wallet_connect', 'personal_ecRecover', 'personal_listAccounts', 'eth_decrypt']) assert.equal(await ask(method), 4200, method);
    for (const method of ['eth_maxPriorityFeePerGas', 'debug_absent', 'wallets_x', 'rsk_absent']) assert.equal(await ask(method), -32601, method);
    for (const method of ['eth_sendUserOperation', 'wallet_sendCalls', 'eth_signTypedData_v4', 'personal_sign']) assert.equal(await ask(method), holdsKeys ? 4200 : 4100, method);
  }
});
