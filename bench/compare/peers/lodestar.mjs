// Lodestar's prover in this process. Its consensus part, which needs a beacon node, is replaced: the head is
// set directly.
import { LCTransport, createVerifiedExecutionProvider } from '@lodestar/prover';
import { bytes, post } from './wire.mjs';

const quiet = () => {};
/** Errors that the prover has logged. */
const faults = [];
const logger = { info: quiet, debug: quiet, verbose: quiet, trace: quiet, warn: quiet, error: (text, _, error) => faults.push(error?.message ?? text) };

/** The part of a beacon block that describes its execution block. */
const payload = (block) => ({
  blockNumber: Number(block.number),
  blockHash: bytes(block.hash),
  parentHash: bytes(block.parentHash),
  stateRoot: bytes(block.stateRoot),
  prevRandao: bytes(block.mixHash),
  gasLimit: Number(block.gasLimit),
  timestamp: Number(block.timestamp),
});

export async function open({ url, block }) {
  const upstream = {
    async request(message) {
      return post(url, message);
    },
  };
  // No beacon node listens at this URL.
  const options = { transport: LCTransport.Rest, network: 'mainnet', urls: ['http://127.0.0.1:1'], logger, mutateProvider: false };
  const { provider, proofProvider } = createVerifiedExecutionProvider(upstream, options);
  await proofProvider.readyPromise.catch(quiet);
  faults.length = 0;
  let head = payload(block);
  proofProvider.lightClient = {};
  proofProvider.waitToBeReady = async () => {};
  proofProvider.getExecutionPayload = async () => head;
  return {
    follow: async (next) => {
      head = payload(next);
    },
    call: async (transaction) => {
      const { result, error } = await provider.request('eth_call', [transaction, 'latest'], { raiseError: false });
      if (error) throw new Error(`${error.message} ${faults.splice(0).join('; ')}`);
      return result;
    },
    close: async () => {},
  };
}
