// Starts a development chain for a test file and ends it afterwards.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Starts `rootlight dev`; resolves with its URL once it answers. */
export async function startChain(...flags) {
  const process_ = spawn(process.env.ROOTLIGHT, ['dev', '--http-port', '0', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await new Promise((resolve, reject) => {
    process_.once('error', reject);
    process_.once('exit', (code) => reject(new Error(`rootlight ended with ${code}`)));
    createInterface({ input: process_.stdout }).on('line', (line) => {
      const found = line.match(/^listening (\S+)/);
      if (found) resolve(found[1]);
    });
  });
  return { url, stop: () => stop(process_) };
}

function stop(process_) {
  return new Promise((resolve) => {
    process_.removeAllListeners('exit');
    process_.once('exit', resolve);
    process_.kill('SIGTERM');
  });
}

/** The compiled test contract. */
export const token = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));

/** The mnemonic that the chain funds when none is given. */
export const MNEMONIC = 'test test test test test test test test test test test junk';
