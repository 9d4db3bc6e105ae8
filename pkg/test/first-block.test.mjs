// A light client of a development chain starts at the block 0 that its upstreams show.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { firstBlock } from '../first-block.js';
import { createProvider } from '../index.js';
import { newLife } from '../life.js';
import { ask, startProgram } from './lib/program.mjs';
import { LIMIT } from './lib/wait.mjs';

const NOBODY = 'http://127.0.0.1:1/SECRETKEY';

let one, other;
before(async () => {
  // Both chains have had an old newest block for long.
  [one, other] = await Promise.all(['5', '6'].map((time) => startProgram(['dev', '--http-port', '0', '--silent', '--genesis-time', time])));
});
after(() => Promise.all([one, other].map((program) => program?.stop())));

const client = (upstreams, more = {}) => createProvider({ network: 'regtest', upstreams, timeout: 30_000, ...more });

test('without a word about the start, and it says whom it trusts', LIMIT, async () => {
  const provider = await client(one.url);
  const status = (method, ...params) => provider.request({ method, params });
  const { result: first } = await ask(one.url, 'eth_getBlockByNumber', ['0x0', false]);
  assert.deepEqual(await status('rootlight_checkpoint'), { number: '0x0', hash: first.hash, totalDifficulty: '0x1', linkedBelow: 0 });
  assert.equal((await status('rootlight_syncStatus')).start, 'upstream');
  const { start, origin, level } = await status('rootlight_verification', '0x0');
  assert.deepEqual([start, origin, level], ['upstream', 'upstream', 'verified']);
  assert.equal((await status('eth_getBlockByNumber', 'latest', false)).totalDifficulty, '0x1');
  provider.close();
});

test('`rootlight_checkpoint` of the chain gives what a client needs', LIMIT, async () => {
  const { result } = await ask(one.url, 'rootlight_checkpoint');
  const { result: first } = await ask(one.url, 'eth_getBlockByNumber', ['0x0', false]);
  assert.deepEqual(result, { number: '0x0', hash: first.hash, totalDifficulty: first.totalDifficulty, linkedBelow: 0 });
  const provider = await client(one.url, { checkpoint: { ...result, number: Number(result.number), linkedBelow: undefined }, maxAge: 0 });
  const status = await provider.request({ method: 'rootlight_syncStatus', params: [] });
  assert.equal(status.start, 'checkpoint', 'the caller has named the block');
  provider.close();
});

test('upstreams of different chains are refused, and both are named', LIMIT, async () => {
  const hashes = await Promise.all([one, other].map(async ({ url }) => (await ask(url, 'eth_getBlockByNumber', ['0x0', false])).result.hash));
  assert.notEqual(...hashes);
  await assert.rejects(client([one.url, other.url]), ({ code, message }) => {
    assert.equal(code, -32600);
    for (const part of [new URL(one.url).origin, new URL(other.url).origin, ...hashes]) assert.ok(message.includes(part), message);
    return true;
  });
});

test('an upstream that is not there does not count if another one is, and is named without its key if none is', LIMIT, async () => {
  const provider = await client([NOBODY, one.url]);
  assert.equal(await provider.request({ method: 'eth_blockNumber', params: [] }), '0x0');
  provider.close();
  await assert.rejects(client([NOBODY]), ({ code, message }) => {
    assert.equal(code, 4900);
    assert.match(message, /^no upstream shows block 0 of a development chain: http:\/\/127\.0\.0\.1:1: /);
    assert.doesNotMatch(message, /SECRETKEY/);
    return true;
  });
  const odd = [async () => new TextEncoder().encode('{'), async () => new TextEncoder().encode('{"result":null}'), async () => new TextEncoder().encode('{"result":{"hash":7}}')];
  await assert.rejects(client(odd), /upstream 0: not a JSON-RPC response; .*; upstream 1: it has no block 0: .*; upstream 2: it has no block 0: check that it is a development chain$/);
});

test('one that hangs is not waited for once another has shown its block', LIMIT, async () => {
  const response = new TextEncoder().encode(`{"result":{"hash":"0x${'AB'.repeat(32)}","difficulty":"0x1"}}`);
  const exchanges = [() => new Promise(() => {}), async () => response];
  assert.deepEqual(await firstBlock(exchanges, ['a', 'b'], newLife()), { number: 0, hash: `0x${'ab'.repeat(32)}`, totalDifficulty: '0x1', shown: true });
});

test('nothing is stored: the next start of the program makes another chain', LIMIT, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-first-'));
  try {
    const provider = await client(one.url, { storage: folder });
    await provider.request({ method: 'eth_blockNumber', params: [] });
    provider.close();
    assert.deepEqual(readdirSync(folder), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
