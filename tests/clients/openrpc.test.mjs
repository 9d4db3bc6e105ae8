// The OpenRPC document against the schema of the OpenRPC project.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import jsonSchema from '@json-schema-tools/meta-schema';
import openRpcSchema from '@open-rpc/meta-schema';
import Ajv from 'ajv';

import { call, service, startChain } from './chain.mjs';

let chain;

before(async () => {
  chain = await startChain();
});

after(() => chain.stop());

/** The schema of a module; these modules have it as their default export once or twice over. */
const of = (module) => (module.$id ? module : of(module.default));

/** A validator of OpenRPC documents, which refer to the schema of JSON schemas. */
function validator() {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  const anonymous = ({ $schema, $id, ...schema }) => schema;
  for (const name of ['https://meta.json-schema.tools', 'https://meta.json-schema.tools/']) {
    ajv.addSchema(anonymous(of(jsonSchema)), name);
  }
  return ajv.compile(anonymous(of(openRpcSchema)));
}

test('rpc.discover is an OpenRPC document that describes real answers', async () => {
  const document = await call(chain.url, 'rpc.discover');
  const validate = validator();
  assert.ok(validate(document), JSON.stringify(validate.errors?.slice(0, 3)));
  assert.ok(!validate({ ...document, methods: [{}] }), 'the validator refuses a method without a name');

  const ajv = new Ajv({ strict: false });
  ajv.addSchema({ $id: 'document', components: document.components });
  const fits = (schema, value) => ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('#/', 'document#/')))(value);
  const address = '0x00000000000000000000000000000000000000aa';
  for (const [name, ...params] of [
    ['eth_blockNumber'],
    ['eth_chainId'],
    ['eth_getBalance', address, 'latest'],
    ['eth_getCode', address, 'latest'],
    ['eth_getBlockByNumber', '0x7'],
    ['eth_accounts'],
    ['net_version'],
    ['eth_mining'],
    ['eth_netHashrate'],
    // Front ends have no methods that control a chain.
    ...(service ? [] : [['evm_snapshot']]),
  ]) {
    const method = document.methods.find((one) => one.name === name);
    const result = await call(chain.url, name, ...params);
    assert.ok(fits(method.result.schema, result), `${name}: ${JSON.stringify(result)}`);
    params.forEach((value, place) => assert.ok(fits(method.params[place].schema, value), `${name}: ${value}`));
  }
});
