// Runs programs as users do: in their own process, which nothing else keeps running.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs the text of an ES module that can import this package's files, with `args` as its arguments. Returns its output and how it
 * ended. `flags` are Node.js's own.
 */
export async function runScript(text, args = [], { flags = [], limit = 180_000 } = {}) {
  const given = [...flags, '--input-type=module', '--eval', text, '--', ...args.map((arg) => JSON.stringify(arg))];
  const child = spawn(process.execPath, given, { cwd: PACKAGE, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (piece) => (printed[name] += piece));
  const timer = setTimeout(() => child.kill('SIGKILL'), limit);
  const [code, signal] = await new Promise((resolve) => child.once('close', (...end) => resolve(end)));
  clearTimeout(timer);
  return { code, signal, ...printed };
}
