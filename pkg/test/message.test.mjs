// Requests and responses as text: the short ways of writing and reading them say the same as JSON does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answered, message } from '../message.js';

test('a request is written as JSON writes it, whatever it contains', () => {
  const methods = ['eth_call', '', 'a"b', 'é', '\ud800', '\n', undefined, null, 1, ['eth_call'], { toJSON: () => 'eth_call' }];
  const params = [undefined, null, [], [{ to: '0x1', data: undefined }, 'latest'], { a: '"\\' }, 'text', 7, () => 1, Symbol('no'), ['\u2028', '\ud800']];
  for (const method of methods) {
    for (const given of params) {
      const expected = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: given });
      assert.equal(message({ method, params: given }), expected, expected);
    }
  }
  const circular = [];
  circular.push(circular);
  for (const given of [[1n], circular]) assert.throws(() => message({ method: 'eth_call', params: given }), { code: -32600 });
});

test('a response is read as JSON reads it, whatever it contains', () => {
  const whole = (rest) => `{"jsonrpc":"2.0","id":1,${rest}}`;
  const results = ['"0x"', '"0x12ab"', '"0x12AB"', '"0x12\\u0061"', '"0x\\"}"', '"text"', 'null', 'true', '{"a":"0x1"}', '["0x1"]', '"0x1\\n"'];
  for (const result of results) {
    assert.deepEqual(answered(whole(`"result":${result}`)), { result: JSON.parse(result) }, result);
    assert.deepEqual(answered(whole(`"result":${result},"level":"unproven"`)), { result: JSON.parse(result), level: 'unproven' }, result);
    assert.deepEqual(answered(`{"id":1,"result":${result}}`), { result: JSON.parse(result) }, result);
  }
  assert.throws(() => answered(whole('"error":{"code":-32015,"message":"reverted","data":"0x1"}')), { code: 3, data: '0x1' });
  assert.throws(() => answered(undefined), { code: -32603 });
  assert.throws(() => answered('{"jsonrpc":"2.0","id":1,"result":"0x1"'), SyntaxError);
});
