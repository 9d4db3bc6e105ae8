// `rootlight light`: a light client that serves proven answers over HTTP and WebSocket.
import { openClient } from '../dev-module.js';
import { disconnected, newLife } from '../life.js';
import { INVALID_REQUEST } from '../message.js';
import { COMMANDS } from './commands.js';
import { Usage, address, fileReason, wrongFlag } from './flags.js';
import { serve } from './server.js';

/** Milliseconds between two polls of subscriptions, for events that could not be proven when the chain changed. */
const POLL_INTERVAL = 10_000;

/** Milliseconds between two lines about the progress of the first synchronization. */
const PROGRESS_INTERVAL = 2_000;

/** Values of `--checkpoint` that name no block. */
const STARTS = ['window', 'work', 'built-in'];

/** The checkpoint that a flag names. */
function checkpointOf(text) {
  if (text === undefined || STARTS.includes(text)) return text;
  const [, number, hash, totalDifficulty] = /^(\d{1,15}):(?:0x)?([\da-f]{64})(?::(\w+))?$/i.exec(text) ?? [];
  if (number === undefined) throw new Usage(`--checkpoint: give ${STARTS.join(', ')}, or a block as NUMBER:HASH with the 64 digits of its hash`);
  return { number: Number(number), hash: `0x${hash}`, totalDifficulty };
}

/** A listener that prints the progress to standard error. */
function progress(isSilent) {
  let next = 0;
  return ({ currentBlock, highestBlock, secondsLeft }) => {
    if (isSilent || performance.now() < next) return;
    next = performance.now() + PROGRESS_INTERVAL;
    console.error(`block ${currentBlock} of ${highestBlock}${secondsLeft === undefined ? '' : `, about ${secondsLeft} s left`}`);
  };
}

/** Runs the command until Ctrl-C. */
export async function run(flags) {
  if (!flags.upstream) throw new Usage('--upstream is needed: the npm package has no peer-to-peer network, as the native program has');
  const life = newLife();
  /** Set by the server: it polls the subscriptions of its callers. */
  let changed = () => {};
  const options = {
    network: flags.network ?? 'mainnet',
    upstreams: flags.upstream.map((text, index) => address(text, `--upstream number ${index + 1}`)),
    checkpoint: checkpointOf(flags.checkpoint),
    minDepth: flags['min-depth'],
    maxAge: flags['max-age'],
    minWork: flags['min-work'],
    unproven: flags.unproven,
    storage: flags['data-dir'] ?? null,
    batchLimit: flags['batch-limit'],
  };
  const callbacks = {
    changed: () => changed(),
    progress: progress(flags.silent),
    storeError: ({ message }) => console.error(`--data-dir: headers are not stored: ${fileReason({ code: /\bE[A-Z]+(?=:)/.exec(message)?.[0] }) ?? message}`),
    connection: (reason) => console.error(reason === undefined ? 'an upstream answers again' : `no upstream answers: ${reason}`),
  };
  const client = await life.run(() => openClient(life, options, callbacks)).catch((error) => {
    throw error.code === INVALID_REQUEST ? wrongFlag(error, COMMANDS.light) : error;
  });
  await serve(client, life, flags, { interval: POLL_INTERVAL, onChanged: (listener) => (changed = listener) });
  life.end(disconnected('the program ends'));
  await client.closed;
  return 0;
}
