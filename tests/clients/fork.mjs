// Forks of a development chain, for projects whose tests run on one. What a fork asks that chain is noted.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../pkg/test/lib/upstream.mjs';
import { call, startChain } from './chain.mjs';

/** Passes requests on to a node, and notes their methods. */
async function noted(url) {
  const asked = { methods: [] };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    asked.methods.push(...[JSON.parse(body)].flat().map(({ method }) => method));
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    response.setHeader('content-type', 'application/json');
    response.end(await answer.text());
  });
  return { asked, ...(await listen(server)) };
}

/** The flags of a fork of the chain's newest block, reached at this URL. */
async function flagsOf(chain, url) {
  // A block seals what was set by hand: its state is proven, and that of the block before is not any more.
  await call(chain.url, 'evm_mine');
  const { number, hash } = await call(chain.url, 'eth_getBlockByNumber', 'latest', false);
  return { number, flags: ['--fork', url, '--fork-block', `${Number(number)}:${hash}`] };
}

/** Runs some work on a new fork. */
async function run({ number, flags }, work) {
  const fork = await startChain(...flags);
  try {
    assert.equal(await call(fork.url, 'eth_blockNumber'), number);
    await work(fork.url);
  } finally {
    await fork.stop();
  }
}

/** Runs some work on a fork of the chain's newest block. */
export async function onFork(chain, work) {
  await run(await flagsOf(chain, chain.url), work);
}

/** Runs some work twice, each time on a new fork of the chain's newest block. The second time the chain is asked for nothing. */
export async function twiceOnFork(chain, work) {
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-fork-'));
  const upstream = await noted(chain.url);
  try {
    const { number, flags } = await flagsOf(chain, upstream.url);
    for (const isFirst of [true, false]) {
      upstream.asked.methods.length = 0;
      await run({ number, flags: [...flags, '--data-dir', folder] }, work);
      const { methods } = upstream.asked;
      assert.equal(methods.length > 0, isFirst, `the ${isFirst ? 'first' : 'second'} run has sent ${methods}`);
    }
  } finally {
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
