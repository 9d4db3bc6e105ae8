// foundry's cast with an API key in the path, over HTTP and WebSocket. `CAST` names the program.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { token } from './chain.mjs';
import { assertRefused, startKeyed, until } from './keys.mjs';

// The keys of the first two accounts of the mnemonic "test test ... junk".
const SECRETS = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
];
const NOWHERE = `0x${'00'.repeat(20)}`;
const run = promisify(execFile);
let chain;

before(async () => {
  chain = await startKeyed();
});

after(() => chain?.stop());

async function cast(url, ...args) {
  const { stdout } = await run(process.env.CAST, [args[0], '--rpc-url', url, ...args.slice(1)], { timeout: 20_000 });
  return stdout.trim();
}

for (const [name, url, index] of [
  ['HTTP', () => chain.http, 0],
  ['WebSocket', () => chain.ws, 1],
]) {
  describe(`cast with a key over ${name}`, () => {
    const to = '0x00000000000000000000000000000000000000Aa';
    const secret = ['--legacy', '--json', '--private-key', SECRETS[index]];
    let contract, from;

    const ask = (...args) => cast(url(), ...args);
    const send = async (...args) => JSON.parse(await ask('send', ...secret, ...args));

    before(async () => {
      from = (await run(process.env.CAST, ['wallet', 'address', SECRETS[index]])).stdout.trim();
      const parameters = await run(process.env.CAST, ['abi-encode', 'f(string,uint256)', 'Keyed', '1000']);
      const receipt = await send('--create', `${token.bytecode}${parameters.stdout.trim().slice(2)}`);
      contract = receipt.contractAddress;
    });

    test('transfers, reads and logs', async () => {
      const receipt = await send(contract, 'transfer(address,uint256)', to, '7');
      assert.equal(receipt.status, '0x1');
      assert.equal(await ask('call', contract, 'balanceOf(address)(uint256)', to), '7');
      const logs = ['logs', '--json', '--from-block', '0', '--address', contract];
      const found = JSON.parse(await ask(...logs, 'Transfer(address indexed,address indexed,uint256)', from, to));
      assert.deepEqual(found.map((log) => BigInt(log.data)), [7n]);
      assert.equal(await ask('chain-id'), '33');
      assert.equal(await ask('block-number', receipt.blockHash), `${Number(receipt.blockNumber)}`);
    });

    test('a filter gives what is new, once', async () => {
      const filter = JSON.parse(await ask('rpc', 'eth_newFilter', JSON.stringify({ address: contract })));
      const changes = async () => JSON.parse(await ask('rpc', 'eth_getFilterChanges', filter));
      // The first poll also has the logs of the block that was the newest.
      await changes();
      const { transactionHash } = await send(contract, 'transfer(address,uint256)', to, '1');
      assert.deepEqual((await changes()).map((log) => log.transactionHash), [transactionHash]);
      assert.deepEqual(await changes(), []);
    });

    test('reverts are decoded', async () => {
      const refused = ask('call', '--from', from, contract, 'transfer(address,uint256)', NOWHERE, '1');
      await assert.rejects(refused, ({ stderr }) => /no receiver/.test(stderr));
      const error = (await run(process.env.CAST, ['sig', 'NotEnough(address,uint256,uint256)'])).stdout.trim();
      const poor = ask('call', '--from', from, contract, 'transfer(address,uint256)', to, '5000');
      await assert.rejects(poor, ({ stderr }) => stderr.includes(error.slice(2)));
    });

    // cast has no batches.
    test('subscriptions', { skip: name === 'HTTP' && 'cast subscribes over WebSocket only' }, async () => {
      const listener = spawn(process.env.CAST, ['logs', '--rpc-url', url(), '--subscribe', '--json', '--address', contract]);
      let seen = '';
      listener.stdout.on('data', (data) => (seen += data));
      try {
        let sent;
        // The process does not say when it has subscribed.
        await until(async () => {
          sent = await send(contract, 'transfer(address,uint256)', to, '2');
          return seen.includes('transactionHash');
        }, 'a log');
        assert.ok(sent.status === '0x1' && seen.toLowerCase().includes(contract.toLowerCase()));
      } finally {
        listener.kill();
      }
    });
  });
}

const refused = ({ stderr }) => /401/.test(stderr);

test('wrong and revoked keys are refused', async () => {
  await assertRefused(chain.wrong);
  await assert.rejects(cast(chain.wrong.http, 'chain-id'), refused);
  await assert.rejects(cast(chain.wrong.ws, 'chain-id'));
  const late = chain.create('--name', 'late');
  assert.equal(await cast(late.http, 'chain-id'), '33');
  assert.equal(await cast(late.ws, 'chain-id'), '33');
  await chain.revoke(late);
  await assert.rejects(cast(late.http, 'chain-id'), refused);
  await assert.rejects(cast(late.ws, 'chain-id'));
  await assertRefused(late);
});
