// The light client of the built package over several upstreams and over WebSocket.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { transportTo } from './lib/chain-transport.mjs';
import { inPage } from './lib/in-page.mjs';
import { scenario as hedge } from './lib/hedge-scenario.mjs';
import { scenario } from './lib/upstreams-scenario.mjs';
import { until } from './lib/wait.mjs';

/** Number of checks in the scenario. */
const CHECKS = 18;

test('several upstreams, sending and answers without proof in Node.js', async () => {
  assert.equal(await scenario(await import('../index.js'), await import('../dev.js')), CHECKS);
});

test('several upstreams, sending and answers without proof in a page', async () => {
  const work = async () => {
    const { scenario } = await import('/test/lib/upstreams-scenario.mjs');
    return scenario(await import('/index.js'), await import('/dev.js'));
  };
  assert.equal(await inPage((run) => run(work)), CHECKS);
});

/** All balances are proven before the first exchange fails, and the module's limit holds for exchanges that it no longer waits for. */
const HEDGED = { proven: 12, most: 4 };

test('an upstream that hangs on proofs delays no answer in Node.js, on this thread and in another', async () => {
  const [light, dev] = [await import('../index.js'), await import('../dev.js')];
  for (const worker of [false, 'dedicated']) assert.deepEqual(await hedge(light, dev, worker), HEDGED, String(worker));
});

test('an upstream that hangs on proofs delays no answer in a page, on its thread and in a worker', async () => {
  const work = async (worker) => {
    const { scenario } = await import('/test/lib/hedge-scenario.mjs');
    return scenario(await import('/index.js'), await import('/dev.js'), worker);
  };
  await inPage(async (run) => {
    for (const worker of [false, 'dedicated']) assert.deepEqual(await run(work, worker), HEDGED, String(worker));
  });
});

/** An upstream whose responses to callers come when the test lets them. */
test('exchanges with an upstream have their turns in the order in which they were asked for', async () => {
  const [{ createProvider }, { createDevChain }] = [await import('../index.js'), await import('../dev.js')];
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const { hash } = await ask('eth_getBlockByNumber', '0x0', false);
  const [from, to] = await ask('eth_accounts');
  const sent = [];
  for (let count = 0; count < 4; count += 1) sent.push(await ask('eth_sendTransaction', { from, to, value: '0x1' }));
  const answering = transportTo(chain);
  let release;
  /** The functions that let each exchange go on, and its body; undefined before the head is known. */
  let gated;
  const upstream = async (body) => {
    if (gated) await new Promise((go) => gated.push({ body, go }));
    return answering(body);
  };
  const light = await createProvider({ network: 'regtest', upstream, checkpoint: { number: 0, hash }, pollSeconds: 3_600, store: null });
  try {
    gated = [];
    const request = (method, ...params) => light.request({ method, params });
    // Each of these needs the block after the transaction's place, so that it asks twice.
    const first = sent.map((transaction) => request('eth_getTransactionByHash', transaction));
    const rest = ['0xa1', '0xa2'].map((end) => request('eth_getBalance', end.padEnd(42, '0'), 'latest'));
    await until(() => gated.length === 4, 'four exchanges');
    gated[0].go();
    await until(() => gated.length === 5, 'the next exchange');
    assert.match(gated[4].body, /0xa10000/, 'the exchange that waited, and not the second one of the first message');
    let released = 1;
    release = setInterval(() => gated.slice(released).forEach(({ go }) => ((released += 1), go())), 5);
    assert.deepEqual((await Promise.all(first)).map(({ hash }) => hash), sent);
    assert.equal((await Promise.all(rest)).length, 2);
  } finally {
    clearInterval(release);
    light.close();
    chain.close();
  }
});

/** A client that looks for blocks once an hour finds the block of its own transaction at once. */
async function send({ createProvider }, { createDevChain }) {
  const chain = await createDevChain();
  const ask = (method, ...params) => chain.request({ method, params });
  const { hash } = await ask('eth_getBlockByNumber', '0x0', false);
  const upstream = transportTo(chain);
  const light = await createProvider({ network: 'regtest', upstream, checkpoint: { number: 0, hash }, pollSeconds: 3_600, store: null });
  try {
    const [from, to] = await ask('eth_accounts');
    for (const [nonce, blockNumber] of [['0x0', '0x1'], ['0x1', '0x2']]) {
      const signed = await ask('eth_signTransaction', { from, to, value: '0x1', gas: '0x5208', nonce });
      const sent = await light.request({ method: 'eth_sendRawTransaction', params: [signed.raw ?? signed] });
      const receipt = () => light.request({ method: 'eth_getTransactionReceipt', params: [sent] });
      assert.equal((await until(receipt, 'the receipt', { every: 20 })).blockNumber, blockNumber);
    }
  } finally {
    light.close();
    chain.close();
  }
}

test('the block of an own transaction is found at once', async () => {
  await send(await import('../index.js'), await import('../dev.js'));
});

/** Serves a chain over WebSocket on loopback; `announce` notifies every subscriber of a block. */
async function serve(chain) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  const ask = transportTo(chain, ['eth_subscribe']);
  const subscribers = new Set();
  server.on('connection', (socket) => {
    socket.on('message', async (data) => {
      const text = data.toString();
      if (text.includes('eth_subscribe')) subscribers.add(socket);
      socket.send(new TextDecoder().decode(await ask(text)));
    });
    socket.on('close', () => subscribers.delete(socket));
  });
  await once(server, 'listening');
  const news = JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: '0x1', result: {} } });
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    subscribers: () => subscribers.size,
    announce: () => [...subscribers].forEach((socket) => socket.send(news)),
    drop: () => [...server.clients].forEach((socket) => socket.terminate()),
    close: () => {
      server.clients.forEach((socket) => socket.terminate());
      server.close();
    },
  };
}

/** The client follows announced blocks without polling, and opens a lost connection again. */
async function follow({ createProvider, webSocketTransport }, { createDevChain }) {
  const chain = await createDevChain();
  const server = await serve(chain);
  const genesis = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const checkpoint = { number: 0, hash: genesis.hash };
  const upstream = webSocketTransport(server.url, { WebSocket });
  const light = await createProvider({ network: 'regtest', upstream, checkpoint, pollSeconds: 3_600, store: null });
  const head = () => light.request({ method: 'eth_blockNumber' });
  const mined = async () => {
    await chain.request({ method: 'evm_mine' });
    const wanted = await chain.request({ method: 'eth_blockNumber' });
    const reached = async () => {
      if ((await head()) === wanted) return true;
      server.announce();
      return false;
    };
    await until(reached, `block ${wanted}`, { every: 50 });
  };
  try {
    await mined();
    await mined();
    server.drop();
    // The first request after the loss opens the connection again.
    const [account] = await chain.request({ method: 'eth_accounts' });
    const asked = () => light.request({ method: 'eth_getBalance', params: [account, 'latest'] }).catch(() => undefined);
    await until(asked, 'an answer over a new connection', { every: 50 });
    await mined();
  } finally {
    light.close();
    upstream.close();
    chain.close();
    server.close();
  }
}

test('blocks that a node announces over WebSocket are followed', async () => {
  await follow(await import('../index.js'), await import('../dev.js'));
});

test('blocks that a node announces over WebSocket are followed in a page', async () => {
  const { createDevChain } = await import('../dev.js');
  const chain = await createDevChain();
  const server = await serve(chain);
  const genesis = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const checkpoint = { number: 0, hash: genesis.hash };
  let mined;
  const announcing = setInterval(async () => {
    if (server.subscribers() === 0) return;
    await (mined ??= chain.request({ method: 'evm_mine' }));
    server.announce();
  }, 50);
  try {
    const work = async (upstream, checkpoint) => {
      const { createProvider } = await import('/index.js');
      const { until } = await import('/test/lib/wait.mjs');
      const light = await createProvider({ network: 'regtest', upstream, checkpoint, pollSeconds: 3_600, store: null });
      return until(async () => (await light.request({ method: 'eth_blockNumber' })) === '0x1', 'block 1');
    };
    assert.equal(await inPage((run) => run(work, server.url, checkpoint)), true);
  } finally {
    clearInterval(announcing);
    server.close();
    chain.close();
  }
});
