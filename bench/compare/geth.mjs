// go-ethereum as a node that mines on demand: this script is its consensus layer (engine API, Shanghai).
import { execFileSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Node } from './node.mjs';

/** Forks that are active from the genesis on. */
const FORKS = ['homestead', 'eip150', 'eip155', 'eip158', 'byzantium', 'constantinople', 'petersburg', 'istanbul', 'berlin', 'london'];
/** Time for the node to put transactions into a block, in milliseconds. */
const FILL = 150;
/** The recipient of fees. */
const NOBODY = `0x${'0'.repeat(40)}`;
const ZERO = `0x${'0'.repeat(64)}`;

const base64 = (data) => Buffer.from(data).toString('base64url');

function token(secret) {
  const head = base64(JSON.stringify({ alg: 'HS256', typ: 'JWT' }));
  const body = base64(JSON.stringify({ iat: Math.floor(Date.now() / 1000) }));
  return `${head}.${body}.${createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url')}`;
}

/** Starts `binary` with HTTP on `port`, WebSocket on `port + 1` and the engine API on `port + 2`. */
export async function startGeth(binary, port, chainId, alloc) {
  const folder = mkdtempSync(join(tmpdir(), 'geth-'));
  const secret = randomBytes(32);
  const forks = Object.fromEntries(FORKS.map((fork) => [`${fork}Block`, 0]));
  const config = { chainId, ...forks, terminalTotalDifficulty: 0, terminalTotalDifficultyPassed: true, shanghaiTime: 0 };
  const genesis = { config, difficulty: '0x0', gasLimit: '0x5f5e100', baseFeePerGas: '0x7', alloc };
  writeFileSync(join(folder, 'genesis.json'), JSON.stringify(genesis));
  writeFileSync(join(folder, 'secret'), secret.toString('hex'));
  execFileSync(binary, ['--datadir', folder, 'init', join(folder, 'genesis.json')], { stdio: 'ignore' });
  const flags = [
    ['--datadir', folder, '--networkid', `${chainId}`, '--authrpc.port', `${port + 2}`, '--authrpc.jwtsecret', join(folder, 'secret')],
    ['--http', '--http.port', `${port}`, '--http.api', 'eth,net,web3,debug,txpool', '--ws', '--ws.port', `${port + 1}`, '--ws.api', 'eth'],
    ['--nodiscover', '--maxpeers', '0', '--ipcdisable', '--gcmode', 'archive', '--syncmode', 'full', '--verbosity', '1'],
  ];
  const node = await Node.start([binary, ...flags.flat()], port);
  node.socketPort = port + 1;
  const engine = async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token(secret)}` };
    const { result, error } = await (await fetch(`http://127.0.0.1:${port + 2}`, { method: 'POST', headers, body })).json();
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  /** Mines one block with the pool's transactions, or `empty` blocks without waiting for transactions. */
  node.mine = async (empty = 0) => {
    const head = await node.connection.call('eth_getBlockByNumber', 'latest', false);
    const state = (hash) => ({ headBlockHash: hash, safeBlockHash: hash, finalizedBlockHash: ZERO });
    let [hash, time] = [head.hash, BigInt(head.timestamp)];
    for (let mined = 0; mined < Math.max(empty, 1); mined++) {
      const timestamp = `0x${(++time).toString(16)}`;
      const wanted = { timestamp, prevRandao: ZERO, suggestedFeeRecipient: NOBODY, withdrawals: [] };
      const { payloadId } = await engine('engine_forkchoiceUpdatedV2', state(hash), wanted);
      if (!empty) await sleep(FILL);
      const { executionPayload } = await engine('engine_getPayloadV2', payloadId);
      await engine('engine_newPayloadV2', executionPayload);
      hash = executionPayload.blockHash;
    }
    await engine('engine_forkchoiceUpdatedV2', state(hash), null);
  };
  const stop = node.stop.bind(node);
  node.stop = async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return node;
}
