// Filters that are polled over HTTP, and subscriptions of several WebSockets, with ethers and viem: each event once, in order.
// Behind a balancer each poll and each connection is at another front end.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Contract, ContractFactory, HDNodeWallet, JsonRpcProvider, WebSocketProvider } from 'ethers';
import { createPublicClient, http, webSocket } from 'viem';
import { rootstock } from 'viem/chains';
import { call, MNEMONIC, startChain, token, until } from './chain.mjs';

const local = { ...rootstock, id: 33, name: 'regtest', testnet: true };
const TO = '0x00000000000000000000000000000000000000ee';
/** Connections: more than there are front ends. */
const CONNECTIONS = 4;
let chain, provider, own, contract, address;

const polling = (url) => new JsonRpcProvider(url, 33, { cacheTimeout: -1, pollingInterval: 50, staticNetwork: true });
const socketUrl = () => chain.url.replace('http', 'ws');

before(async () => {
  chain = await startChain();
  [provider, own] = [polling(chain.url), polling(chain.control)];
  const account = HDNodeWallet.fromPhrase(MNEMONIC, '', "m/44'/60'/0'/0/4");
  const deployed = await new ContractFactory(token.abi, token.bytecode, account.connect(provider)).deploy('Events', 1000n);
  await deployed.waitForDeployment();
  address = await deployed.getAddress();
  contract = new Contract(address, token.abi, account.connect(provider));
});

after(async () => {
  provider?.destroy();
  own?.destroy();
  await chain?.stop();
});

/** Makes transfers of these values, each in a block of its own; returns the hashes of the transactions and of the blocks. */
async function transfers(values, each = async () => {}) {
  const made = [];
  for (const value of values) {
    const sent = await contract.transfer(TO, value);
    const { blockHash } = await sent.wait();
    made.push({ transaction: sent.hash, block: blockHash });
    await each();
  }
  return made;
}

test('filters give each block and log once, however they are polled', async () => {
  const reader = createPublicClient({ chain: local, transport: http(chain.url), cacheTime: 0 });
  const [logs, blocks] = [await provider.send('eth_newFilter', [{ address }]), await provider.send('eth_newBlockFilter', [])];
  const events = await reader.createContractEventFilter({ abi: token.abi, address, eventName: 'Transfer' });
  const told = { logs: [], blocks: [], values: [] };
  const poll = async () => {
    told.logs.push(...(await provider.send('eth_getFilterChanges', [logs])).map((log) => log.transactionHash));
    told.blocks.push(...(await provider.send('eth_getFilterChanges', [blocks])));
    told.values.push(...(await reader.getFilterChanges({ filter: events })).map((log) => log.args.value));
  };
  // The first poll also has the logs of the block that was the newest.
  await poll();
  Object.values(told).forEach((list) => list.splice(0));
  const values = [1n, 2n, 3n, 4n, 5n, 6n, 7n];
  const made = await transfers(values, poll);
  await poll();
  assert.deepEqual(told.values, values);
  assert.deepEqual(told.logs, made.map(({ transaction }) => transaction));
  assert.deepEqual(told.blocks, made.map(({ block }) => block));
  const all = await provider.send('eth_getFilterLogs', [logs]);
  assert.deepEqual(all.slice(-values.length).map((log) => log.transactionHash), told.logs);
  for (const filter of [logs, blocks]) assert.equal(await provider.send('eth_uninstallFilter', [filter]), true);
  await assert.rejects(provider.send('eth_getFilterChanges', [logs]), ({ error }) => error.code === -32000);
});

test('subscriptions of all connections tell the same, once', async () => {
  const from = await provider.getBlockNumber();
  // All clients of viem share one connection.
  const subscribers = await Promise.all([...Array.from({ length: CONNECTIONS }, withEthers), withViem()]);
  // viem and ethers do not say when they have subscribed.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const values = [11n, 12n, 13n, 14n, 15n];
  await transfers(values);
  const heights = values.map((_, index) => from + 1 + index);
  await until(() => subscribers.every(({ told }) => told.values.length >= 5 && told.heights.length >= 5), 'all events');
  for (const { told } of subscribers) assert.deepEqual(told, { values, heights });
  for (const { end } of subscribers) await end();
});

async function withEthers() {
  const socket = new WebSocketProvider(socketUrl(), 33, { staticNetwork: true });
  const told = { values: [], heights: [] };
  await socket.on('block', (number) => told.heights.push(number));
  await new Contract(address, token.abi, socket).on('Transfer', (_from, _to, value) => told.values.push(value));
  return { told, end: () => socket.destroy() };
}

async function withViem() {
  const transport = webSocket(socketUrl(), { retryCount: 0, reconnect: false, keepAlive: false });
  const client = createPublicClient({ chain: local, transport });
  const told = { values: [], heights: [] };
  const onError = (error) => told.values.push(error);
  client.watchBlocks({ onBlock: ({ number }) => told.heights.push(Number(number)), onError });
  const onLogs = (logs) => told.values.push(...logs.map((log) => log.args.value));
  client.watchContractEvent({ abi: token.abi, address, eventName: 'Transfer', onLogs, onError });
  return { told, end: async () => (await client.transport.getRpcClient()).close() };
}

test('a log whose block leaves the chain is taken back', async () => {
  const filter = await provider.send('eth_newFilter', [{ address }]);
  await provider.send('eth_getFilterChanges', [filter]);
  const subscribers = await Promise.all(Array.from({ length: CONNECTIONS }, rawLogs));
  const id = await own.send('evm_snapshot', []);
  // Sent to the chain itself: front ends send again what they have sent and what leaves the chain.
  const { hash } = await contract.connect(contract.runner.connect(own)).transfer(TO, 21n);
  await chain.shown();
  const seen = (list) => list.map((log) => [log.transactionHash, log.removed ?? false]);
  assert.deepEqual(seen(await provider.send('eth_getFilterChanges', [filter])), [[hash, false]]);
  await until(() => subscribers.every(({ told }) => told.length === 1), 'the log');
  assert.equal(await own.send('evm_revert', [id]), true);
  await own.send('hardhat_mine', ['0x2']);
  await chain.shown();
  assert.deepEqual(seen(await provider.send('eth_getFilterChanges', [filter])), [[hash, true]]);
  await until(() => subscribers.every(({ told }) => told.length === 2), 'the log again');
  for (const { told, socket } of subscribers) {
    assert.deepEqual(seen(told), [[hash, false], [hash, true]]);
    socket.destroy();
  }
  assert.equal(await call(chain.url, 'eth_getTransactionReceipt', hash), null);
});

/** A subscription of logs as they are told. */
async function rawLogs() {
  const socket = new WebSocketProvider(socketUrl(), 33, { staticNetwork: true });
  const told = [];
  const id = await socket.send('eth_subscribe', ['logs', { address }]);
  socket.websocket.addEventListener('message', ({ data }) => {
    const { params } = JSON.parse(data);
    if (params?.subscription === id) told.push(params.result);
  });
  return { told, socket };
}
