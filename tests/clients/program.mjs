// Starts the program `rootlight`, and calls nodes.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Starts the program and waits until it listens: {child, url, stop}. */
export async function startProgram(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
  const listening = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^listening (http\S+)/.exec(line)?.[1];
      if (url) return url;
    }
    return undefined;
  })();
  const url = await Promise.race([listening, ended.then(() => undefined)]);
  if (!url) throw new Error(`${program} ${args.join(' ')} ended with ${await ended}`);
  // The program must be able to go on writing.
  child.stdout.resume();
  return { child, url, stop: () => (child.kill(), ended) };
}

/** Sends one call; returns its result. */
export async function call(url, method, ...params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { result, error } = await response.json();
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}
