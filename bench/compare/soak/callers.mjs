// Clients that send mixed requests over HTTP and WebSocket, one after another.

/** Milliseconds between two requests of a client. */
const PAUSE = 10;
/** Requests over a WebSocket before the client connects again. */
const PER_SOCKET = 200;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const pick = (list) => list[Math.floor(Math.random() * list.length)];
const call = (method, ...params) => ({ jsonrpc: '2.0', id: 1, method, params });

/** A random request: mostly reads and calls, some logs, estimates, errors and batches. */
function request(chain) {
  const who = () => pick(chain.senders).address;
  const token = (from, name, ...args) => ({ from, to: chain.token, data: chain.abi.encodeFunctionData(name, args) });
  const single = () => pick([
    () => call('eth_blockNumber'),
    () => call('eth_chainId'),
    () => call('eth_getBalance', who(), 'latest'),
    () => call('eth_getTransactionCount', who(), 'pending'),
    () => call('eth_getCode', chain.token, 'latest'),
    () => call('eth_getBlockByNumber', 'latest', true),
    () => call('eth_gasPrice'),
    () => call('eth_call', token(who(), 'balanceOf', who()), 'latest'),
    () => call('eth_call', token(who(), 'name'), 'latest', { [who()]: { balance: '0x1' } }),
    // Reverts.
    () => call('eth_call', token(who(), 'transfer', `0x${'00'.repeat(20)}`, 1n), 'latest'),
    () => call('eth_call', token(who(), 'transfer', who(), 10n ** 30n), 'latest'),
    () => call('eth_estimateGas', token(who(), 'transfer', who(), 1n)),
    () => call('eth_getLogs', { fromBlock: '0x0', toBlock: 'latest', address: chain.token }),
    () => call('eth_getLogs', { fromBlock: '0x0', toBlock: 'latest', topics: [null, `0x${'00'.repeat(32)}`] }),
    () => call('eth_getProof', chain.token, ['0x0'], 'latest'),
    () => call('trace_block', 'latest'),
    () => call('txpool_content'),
  ])();
  return Math.random() < 0.15 ? Array.from({ length: 20 }, (_, id) => ({ ...single(), id })) : single();
}

const nameOf = (message) => (Array.isArray(message) ? 'batch' : message.method);

/** Requests over HTTP, and filters, until `running` ends. */
export async function callers(server, chain, statistics, running) {
  const post = server.client();
  // The filters of a key are unknown to the others.
  const key = server.key();
  const send = async (message) => {
    const started = performance.now();
    const { status, text } = await post(key, JSON.stringify(message));
    const answer = JSON.parse(text);
    statistics.answer(status, answer, performance.now() - started, nameOf(message));
    return answer.result;
  };
  while (running()) {
    const kinds = [call('eth_newBlockFilter'), call('eth_newPendingTransactionFilter'), call('eth_newFilter', { address: chain.token })];
    const filter = await send(pick(kinds));
    for (let i = 0; i < 20 && running(); i++) {
      await send(request(chain));
      await sleep(PAUSE);
      if (i % 5 === 0) await send(call('eth_getFilterChanges', filter));
    }
    if ((await send(call('eth_uninstallFilter', filter))) !== true) statistics.fault('a filter was lost');
  }
}

/** Requests over WebSockets with subscriptions, which are opened and closed again and again. */
export async function socketCallers(server, chain, statistics, running) {
  while (running()) {
    const socket = server.socket(server.key());
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    let answered;
    socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (message.method !== 'eth_subscription') answered(message);
    });
    const send = async (message) => {
      const started = performance.now();
      const answer = await new Promise((resolve, reject) => {
        answered = resolve;
        socket.once('close', reject);
        socket.send(JSON.stringify(message));
      });
      socket.removeAllListeners('close');
      statistics.answer(0, answer, performance.now() - started, nameOf(message));
      return answer.result;
    };
    for (let i = 0; i < PER_SOCKET && running(); i++) {
      const subscription = i % 10 === 0 && (await send(call('eth_subscribe', pick(['newHeads', 'logs', 'newPendingTransactions']))));
      await send(request(chain));
      await sleep(PAUSE);
      // Some subscriptions end with the connection.
      if (i % 20 === 0) await send(call('eth_unsubscribe', subscription));
    }
    socket.close();
    statistics.event('WebSockets closed by their clients');
  }
}
