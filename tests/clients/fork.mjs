// Forks of a development chain, for projects whose tests run on one. What a fork asks that chain is counted.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../pkg/test/lib/upstream.mjs';
import { call, startChain } from './chain.mjs';

/** Passes requests on to a node, and counts them. */
async function counted(url) {
  const asked = { count: 0 };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    asked.count += 1;
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    response.setHeader('content-type', 'application/json');
    response.end(await answer.text());
  });
  return { asked, ...(await listen(server)) };
}

/** Runs some work twice, each time on a new fork of the chain's newest block. The second time the chain is asked nothing. */
export async function twiceOnFork(chain, work) {
  const folder = mkdtempSync(join(tmpdir(), 'rootlight-fork-'));
  const upstream = await counted(chain.url);
  try {
    const { number, hash } = await call(chain.url, 'eth_getBlockByNumber', 'latest', false);
    const flags = ['--fork', 'regtest', '--fork', upstream.url, '--fork-block', `${Number(number)}:${hash}`, '--data-dir', folder];
    for (const isFirst of [true, false]) {
      const before = upstream.asked.count;
      const fork = await startChain(...flags);
      try {
        assert.equal(await call(fork.url, 'eth_blockNumber'), number);
        await work(fork.url);
      } finally {
        await fork.stop();
      }
      const count = upstream.asked.count - before;
      assert.equal(count > 0, isFirst, `the ${isFirst ? 'first' : 'second'} run has sent ${count} exchanges to the chain`);
    }
  } finally {
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
