// From a checkpoint to a proven head, in Node.js and in a page.

const hexadecimal = (number) => `0x${number.toString(16)}`;

/** Loads the module, then connects. Returns the head, the proofs of the given blocks, and the milliseconds to the first proven answer. */
export async function follow({ createProvider, load }, options, numbers) {
  await load();
  const began = performance.now();
  // On this thread, where the module is loaded already.
  const provider = await createProvider({ ...options, storage: null, worker: false });
  try {
    const head = await provider.request({ method: 'eth_blockNumber', params: [] });
    const milliseconds = performance.now() - began;
    const proofs = [];
    for (const number of numbers) proofs.push(await provider.request({ method: 'rootlight_verification', params: [hexadecimal(number)] }));
    const header = await provider.request({ method: 'rsk_getRawBlockHeaderByNumber', params: [head] });
    const block = await provider.request({ method: 'eth_getBlockByNumber', params: [head, false] }).catch(({ message }) => ({ refused: message }));
    return { head: Number(head), milliseconds, proofs, header, block };
  } finally {
    provider.close();
  }
}
