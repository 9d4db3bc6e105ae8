// Chromium's DevTools protocol with workers, which the driver's commands do not reach.
import WebSocket from 'ws';

/**
 * Takes the network away from the shared workers of a browser, as a laptop's Wi-Fi does: returns `setOffline(whether)` and `close()`, which gives the
 * network back.
 */
export async function sharedWorkers(address) {
  const { webSocketDebuggerUrl } = await (await fetch(`http://${address}/json/version`)).json();
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const waiting = new Map();
  let last = 0;
  socket.on('message', (data) => {
    const { id, result, error } = JSON.parse(data);
    const call = waiting.get(id);
    waiting.delete(id);
    if (error) call?.reject(new Error(error.message));
    else call?.resolve(result);
  });
  const command = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    });
  const { targetInfos } = await command('Target.getTargets');
  const workers = targetInfos.filter(({ type }) => type === 'shared_worker');
  const sessions = await Promise.all(workers.map(({ targetId }) => command('Target.attachToTarget', { targetId, flatten: true })));
  for (const { sessionId } of sessions) await command('Network.enable', {}, sessionId);
  return {
    count: sessions.length,
    async setOffline(offline) {
      const conditions = { offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
      for (const { sessionId } of sessions) await command('Network.emulateNetworkConditions', conditions, sessionId);
    },
    close: () => socket.close(),
  };
}
