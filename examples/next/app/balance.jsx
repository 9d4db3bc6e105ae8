'use client';
// The address, the node and the network are in the page's address: /?address=0x..&node=http://127.0.0.1:4444&network=regtest
import { useEffect, useState } from 'react';
import { createProvider } from 'rootlight';

/** Makes a provider as the page's address says, and reads the balance in wei. */
async function proven(signal, show) {
  const query = new URLSearchParams(location.search);
  const network = query.get('network') ?? 'mainnet';
  const provider = await createProvider({
    network,
    upstreams: query.get('node') ?? 'https://public-node.rsk.co',
    onProgress: ({ currentBlock, highestBlock }) => show(`Verifying block ${currentBlock} of ${highestBlock}`),
    signal,
  });
  signal.addEventListener('abort', () => provider.close());
  const address = query.get('address') ?? '0x0000000000000000000000000000000001000006';
  const balance = await provider.request({ method: 'eth_getBalance', params: [address, 'latest'] });
  show(`${BigInt(balance)} wei`);
}

export default function Balance() {
  const [text, show] = useState('Verifying the chain…');
  useEffect(() => {
    const end = new AbortController();
    proven(end.signal, show).catch((error) => end.signal.aborted || show(error.message));
    return () => end.abort();
  }, []);
  return <p id="balance">{text}</p>;
}
