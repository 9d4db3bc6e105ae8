// The program of the package, in a process of its own.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const PROGRAM = fileURLToPath(new URL('../../bin/rootlight.js', import.meta.url));

/** Starts the program, and resolves once it listens: its addresses, what it has printed so far, and what ends it. */
export async function startProgram(args, env = {}) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines = [];
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal, errors })));
  const listening = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      const [, url, socket] = /^listening (http\S+) (ws\S+)$/.exec(line) ?? [];
      if (url) resolve({ url, socket });
    });
  });
  const first = await Promise.race([listening, ended]);
  if (!first.url) throw new Error(`rootlight ${args.join(' ')} ended with ${first.code}: ${first.errors}`);
  return { ...first, lines, ended, stop: (signal = 'SIGINT') => (child.kill(signal), ended) };
}

/** Runs the program to its end. `input` is the text of its standard input, or the descriptor of a file. */
export function runProgram(args, input) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: [typeof input === 'number' ? input : 'pipe', 'pipe', 'pipe'] });
  const texts = { stdout: '', stderr: '' };
  for (const name of Object.keys(texts)) child[name].setEncoding('utf8').on('data', (text) => (texts[name] += text));
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...texts })));
}

/** Sends one call; returns the whole response. */
export async function ask(url, method, params = [], headers = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
  return response.json();
}
