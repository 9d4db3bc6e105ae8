// `rootlight light`: a light client that serves proven answers over HTTP and WebSocket.
import { openClient } from '../dev-module.js';
import { disconnected, newLife } from '../life.js';
import { INVALID_REQUEST } from '../message.js';
import { Usage } from './flags.js';
import { serve } from './server.js';

/** Milliseconds between two looks for news that could not be proven when the chain changed. */
const LOOK_AGAIN = 10_000;

/** Milliseconds between two lines about the progress of the first synchronization. */
const PROGRESS = 2_000;

/** The checkpoint that a flag names. */
function checkpointOf(text) {
  const [, number, hash, totalDifficulty] = /^(\w+):(\w+)(?::(\w+))?$/.exec(text ?? '') ?? [];
  return number === undefined ? text : { number: Number(number), hash: hash.startsWith('0x') ? hash : `0x${hash}`, totalDifficulty };
}

/** Checks the form of an upstream's address. The error does not repeat it, because it may contain a key. */
function address(text, index) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new Usage(`--upstream number ${index + 1} is not a URL`);
  }
  if (!/^(?:https?|wss?):$/.test(url.protocol)) throw new Usage(`--upstream number ${index + 1} is neither http, https, ws nor wss`);
  return url.href;
}

/** A listener that prints the progress to standard error. */
function progress(isSilent) {
  let next = 0;
  return ({ currentBlock, highestBlock, secondsLeft }) => {
    if (isSilent || performance.now() < next) return;
    next = performance.now() + PROGRESS;
    console.error(`block ${currentBlock} of ${highestBlock}${secondsLeft === undefined ? '' : `, about ${secondsLeft} s left`}`);
  };
}

/** Runs the command until Ctrl-C. */
export async function run(flags) {
  if (!flags.upstream) throw new Usage('--upstream is needed: the npm package has no peer-to-peer network, as the native program has');
  const life = newLife();
  let changed = () => {};
  const options = {
    network: flags.network ?? 'mainnet',
    upstreams: flags.upstream.map(address),
    checkpoint: checkpointOf(flags.checkpoint),
    minDepth: flags['min-depth'],
    maxAge: flags['max-age'],
    minWork: flags['min-work'],
    unproven: flags.unproven,
    storage: flags['data-dir'] ?? null,
    batchLimit: flags['batch-limit'],
  };
  const heard = {
    changed: () => changed(),
    progress: progress(flags.silent),
    storeError: ({ message }) => console.error(`headers are not stored: ${message}`),
    connection: (reason) => console.error(reason === undefined ? 'an upstream answers again' : `no upstream answers: ${reason}`),
  };
  const client = await life.run(() => openClient(life, options, heard)).catch((error) => {
    throw error.code === INVALID_REQUEST ? new Usage(error.message) : error;
  });
  await serve(client, life, flags, { interval: LOOK_AGAIN, hear: (listener) => (changed = listener) });
  life.end(disconnected('the program ends'));
  await client.closed;
  return 0;
}
