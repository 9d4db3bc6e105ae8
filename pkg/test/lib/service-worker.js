// A service worker with a light client: it answers the head for the options that a page sends.
import { createProvider } from '../../index.js';

globalThis.addEventListener('message', ({ data, ports: [port] }) => {
  const work = async () => {
    const provider = await createProvider(data);
    const head = await provider.request({ method: 'eth_blockNumber' });
    provider.close();
    return { head, workers: typeof globalThis.Worker };
  };
  work().then((answer) => port.postMessage(answer), (error) => port.postMessage({ error: error.message }));
});
