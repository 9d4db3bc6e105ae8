// Options with unknown members are refused: a misspelt one would have no effect. Needs no module.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { provide } from '../provider.js';
import { httpTransport } from '../transport.js';
import { webSocketTransport } from '../websocket.js';

const refused = { code: -32600, message: /unknown field `timeuot`/ };

test('transports refuse unknown options', () => {
  assert.throws(() => httpTransport('http://node.example', { timeuot: 1 }), refused);
  assert.throws(() => webSocketTransport('ws://node.example', { timeuot: 1 }), refused);
  assert.ok(httpTransport('http://node.example', { timeout: 1, headers: undefined, timeuot: undefined }));
});

test('options that cannot be meant are told by name', async () => {
  const open = async () => assert.fail('nothing is opened');
  for (const signer of [{}, 'https://wallet.example', () => {}]) {
    await assert.rejects(provide(open, { upstreams: 'http://node.example', signer }), { code: -32600, message: 'signer: give an EIP-1193 provider, such as window.ethereum' });
  }
  for (const none of [undefined, null, {}]) await assert.rejects(provide(open, none), { code: -32600, message: 'upstreams: at least one is needed' });
});

test('a change of upstreams refuses unknown limits, and the provider stays', async () => {
  const opened = [];
  const open = async (life, options) => (opened.push(options), { send: () => '{"jsonrpc":"2.0","id":1,"result":"0x1e"}', takeChanged: () => false });
  const provider = await provide(open, { upstreams: () => {}, network: 'mainnet', timeuot: 1 });
  // The module refuses what is left of the options.
  assert.equal(opened[0].timeuot, 1);
  await assert.rejects(provider.setUpstreams(() => {}, { timeuot: 1 }), refused);
  assert.equal(opened.length, 1);
  await provider.setUpstreams(() => {}, { timeout: 1_000 });
  assert.equal(opened.length, 2);
  provider.close();
});
