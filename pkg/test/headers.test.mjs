// 1,200 consecutive headers of the main network: from a checkpoint to a proven head, in Node.js and in a real page.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkWords } from './lib/documented.mjs';
import { follow } from './lib/headers-scenario.mjs';
import { HeaderNode, rawHeader, readHeaders } from './lib/headers.mjs';
import { inPage } from './lib/in-page.mjs';
import { serveNode } from './lib/upstream.mjs';

const shared = process.env.ROOTLIGHT_SHARED ?? fileURLToPath(new URL('../../../shared', import.meta.url));
const file = `${shared}/realdata/headers/mainnet_4479841_iris_run1200.json`;
const skip = existsSync(file) ? false : `no recorded headers: ${file}`;

/** The lowest ancestor to which a header's fork detection data commit: the seventh, 64 blocks apart. */
const lowestCommitted = (number) => Math.floor((number - 1) / 64) * 64 - 6 * 64;

const start = ([{ number, hash }]) => ({ network: 'mainnet', checkpoint: { number, hash }, maxAge: 0 });

/** Follows the headers from the first one, the checkpoint, in each form, and checks all answers about them. */
async function followAll(headers, run) {
  const numbers = headers.map(({ number }) => number);
  for (const form of ['binary', 'json', 'raw']) {
    const upstream = await serveNode(new HeaderNode(headers, form));
    try {
      const found = await run({ ...start(headers), upstream: upstream.url }, numbers);
      check(found, headers);
      console.log(`${form}: ${headers.length - 1} headers in ${found.milliseconds.toFixed(0)} ms, ${upstream.asked.count} questions`);
    } finally {
      await upstream.close();
    }
  }
}

function check({ head, proofs, header, block }, headers) {
  const last = headers.at(-1);
  assert.equal(head, last.number);
  assert.equal(proofs.length, 1_200);
  let work = 0n;
  for (const [place, proof] of proofs.entries()) {
    if (place > 0) work += headers[place].difficulty;
    const name = `block ${headers[place].number}`;
    assert.equal(proof.blockHash, headers[place].hash, name);
    assert.equal(Number(proof.blockNumber), headers[place].number, name);
    assert.equal(proof.level, 'verified', name);
    assert.equal(proof.origin, place === 0 ? 'checkpoint' : 'mined', name);
    assert.equal(proof.canonical, true, name);
    assert.equal(Number(proof.depth), last.number - headers[place].number, name);
    assert.equal(BigInt(proof.headerWork), work, name);
    const complete = lowestCommitted(headers[place].number) >= headers[0].number;
    if (place > 0) assert.equal(proof.forkDetectionComplete, complete, name);
  }
  // The header can be returned. Its transactions are not recorded, and must not be made up.
  assert.equal(header, rawHeader(last.rlp));
  assert.match(block.refused, /no proof of transactions/);
}

test('a head that is too old is told with the upstream and what to do', { skip }, async () => {
  const { createProvider } = await import('../index.js');
  const headers = readHeaders(file);
  const upstream = await serveNode(new HeaderNode(headers, 'binary'));
  const provider = await createProvider({ ...start(headers), maxAge: undefined, upstream: upstream.url, store: null });
  try {
    await assert.rejects(provider.request({ method: 'eth_blockNumber', params: [] }), ({ code, message }) => {
      assert.equal(code, -32002);
      checkWords('too old', upstream.url, message);
      return true;
    });
  } finally {
    provider.close();
    await upstream.close();
  }
});

test('from a checkpoint to the head in Node.js, headers in every form', { skip }, async () => {
  const rootlight = await import('../index.js');
  await followAll(readHeaders(file), (options, numbers) => follow(rootlight, options, numbers));
});

test('a changed header is refused', { skip }, async () => {
  const rootlight = await import('../index.js');
  const headers = readHeaders(file);
  const changed = Buffer.from(headers[700].rlp);
  // A byte of the bloom filter.
  changed[300] ^= 1;
  headers[700] = { ...headers[700], rlp: changed };
  for (const form of ['binary', 'json', 'raw']) {
    const upstream = await serveNode(new HeaderNode(headers, form));
    const found = follow(rootlight, { ...start(headers), upstream: upstream.url }, []);
    await assert.rejects(found, new RegExp(headers[700].number), form);
    await upstream.close();
  }
});

test('no request is answered from a chain with less work than required', { skip }, async () => {
  const { createProvider } = await import('../index.js');
  const headers = readHeaders(file);
  const upstream = await serveNode(new HeaderNode(headers, 'binary'));
  const newest = async (minWork) => {
    const provider = await createProvider({ ...start(headers), upstream: upstream.url, store: null, minWork });
    return provider.request({ method: 'rsk_getRawBlockHeaderByNumber', params: ['latest'] }).finally(provider.close);
  };
  try {
    assert.equal(await newest(), rawHeader(headers.at(-1).rlp));
    await assert.rejects(newest(100), /% of the work expected of honest miners/);
  } finally {
    await upstream.close();
  }
});

test('from a checkpoint to the head in a page, headers in every form', { skip }, async () => {
  const work = async (settings, list) => {
    const { follow } = await import('/test/lib/headers-scenario.mjs');
    return follow(await import('/index.js'), settings, list);
  };
  await inPage((run) => followAll(readHeaders(file), (options, numbers) => run(work, options, numbers)));
});
