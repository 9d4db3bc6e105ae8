// A wallet that changes its chain while it is asked, and a provider that is closed meanwhile. Needs no module: the client is a function.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import vm from 'node:vm';
import { withWallet } from '../wallet.js';

const SERVED = '0x1e';

/** A wallet whose answers about its chain wait until the test gives them. */
function slowWallet() {
  const asked = [];
  const calls = [];
  const listeners = {};
  return {
    asked, calls,
    request: ({ method }) =>
      method === 'eth_chainId' ? new Promise((resolve) => asked.push(resolve)) : (calls.push(method), Promise.resolve('done')),
    on: (event, listener) => void (listeners[event] = listener),
    tell: (event, value) => listeners[event](value),
  };
}

/** The provider of the package in front of a wallet. */
function ofPackage(wallet, chain = async () => SERVED) {
  const events = [];
  const state = { closed: undefined };
  const emit = (event, value) => events.push(event === 'message' ? [value.data.chainId, value.data.signs] : [event, value]);
  const inner = async () => ({ result: await chain() });
  const { requestWithLevel } = withWallet(inner, { signer: wallet, holdsKeys: false, emit, reason: () => state.closed });
  return { events, state, ask: (method) => requestWithLevel({ method, params: [{}] }) };
}

/** The provider of the example of an extension, in front of a wallet. */
function ofExtension(wallet) {
  let provider;
  let heard;
  const window = {
    ethereum: wallet, origin: 'https://a.example',
    addEventListener: (event, listener) => void (event === 'message' && (heard = listener)),
    dispatchEvent: ({ detail }) => (provider = detail.provider),
    postMessage: ({ id }) => queueMicrotask(() => heard({ source: window, data: { from: 'rootlight-extension', id, result: SERVED } })),
  };
  class CustomEvent {
    constructor(type, { detail }) {
      this.detail = detail;
    }
  }
  const text = readFileSync(new URL('../../examples/extension/page.js', import.meta.url), 'utf8');
  vm.runInNewContext(text, { window, crypto, CustomEvent, console });
  return { ask: (method) => provider.request({ method, params: [{}] }) };
}

const turn = () => new Promise(setImmediate);
const code = (promise) => promise.then(() => 'answered', (error) => error.code);

for (const [name, made] of Object.entries({ package: ofPackage, extension: ofExtension })) {
  for (const method of ['personal_sign', 'eth_sendTransaction', 'wallet_watchAsset', 'wallet_sendCalls']) {
    test(`${name}: ${method} is not passed on by an answer from before a change of the wallet's chain`, async () => {
      const wallet = slowWallet();
      const { ask } = made(wallet);
      const result = code(ask(method));
      await turn();
      wallet.tell('chainChanged', '0x1');
      wallet.asked[0](SERVED);
      await turn();
      assert.deepEqual(wallet.calls, []);
      wallet.asked[1]('0x1');
      assert.equal(await result, 4901);
      // The former chain is not remembered either: the wallet is back.
      const next = code(ask(method));
      await turn();
      wallet.asked[2](SERVED);
      assert.equal(await next, 'answered');
      assert.deepEqual(wallet.calls, [method]);
    });
  }

  test(`${name}: a wallet that changes its chain at each question does not keep a request forever`, async () => {
    const wallet = slowWallet();
    const { ask } = made(wallet);
    const result = code(ask('personal_sign'));
    for (let count = 0; count < 3; count += 1) {
      await turn();
      wallet.tell('chainChanged', SERVED);
      wallet.asked[count](SERVED);
    }
    assert.equal(await result, 4901);
    assert.deepEqual(wallet.calls, []);
  });
}

test('changes of the wallet\'s chain arrive in their order, also if the provider learns its own chain later', async () => {
  const wallet = slowWallet();
  const answers = [];
  const { events } = ofPackage(wallet, () => new Promise((resolve) => answers.push(resolve)));
  for (const chain of ['0x1', '0x5', SERVED]) wallet.tell('chainChanged', chain);
  await turn();
  // The last question is answered first.
  while (events.length < 3) {
    answers.pop()?.(SERVED);
    await turn();
  }
  assert.deepEqual(events, [['0x1', false], ['0x5', false], [SERVED, true]]);
});

test('a change of which the provider cannot tell does not keep back the later ones', async () => {
  const wallet = slowWallet();
  let isLost = true;
  const { events } = ofPackage(wallet, async () => (isLost ? Promise.reject(new Error('lost')) : SERVED));
  wallet.tell('chainChanged', '0x1');
  await turn();
  isLost = false;
  wallet.tell('chainChanged', SERVED);
  await turn();
  assert.deepEqual(events, [[SERVED, true]]);
});

test('a provider that is closed meanwhile neither asks the wallet to sign nor tells of it', async () => {
  const wallet = slowWallet();
  const { ask, state, events } = ofPackage(wallet);
  const result = code(ask('eth_sendTransaction'));
  await turn();
  wallet.tell('chainChanged', SERVED);
  state.closed = Object.assign(new Error('closed'), { code: 4900 });
  for (const resolve of wallet.asked) resolve(SERVED);
  await turn();
  for (const resolve of wallet.asked) resolve(SERVED);
  assert.equal(await result, 4900);
  wallet.tell('accountsChanged', ['0x12']);
  wallet.tell('chainChanged', '0x1');
  await turn();
  assert.deepEqual([wallet.calls, events], [[], []]);
});
