// Processes of a service in a temporary folder of their own. All are ended by their ids at the end.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** How long a server may take to start or to end, in milliseconds. */
const PATIENCE = 60_000;

/** The numbers of an unprivileged user, if this process is root: PostgreSQL refuses to run as root. */
const other = process.getuid() === 0 ? { uid: id('-u'), gid: id('-g') } : {};

function id(flag) {
  return Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
}

/** Waits until `ready` returns something true, and returns it. */
export async function wait(what, ready) {
  for (const limit = Date.now() + PATIENCE; ; ) {
    const found = await ready();
    if (found) return found;
    if (Date.now() > limit) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Free ports of this machine. All are held at once, so that none comes twice. */
export async function freePorts(count) {
  const held = await Promise.all(
    Array.from({ length: count }, () => new Promise((resolve, reject) => {
      const server = createServer().once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(server));
    })),
  );
  const ports = held.map((server) => server.address().port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** A temporary folder and the processes that work in it. */
export class Processes {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-service-'));
  #running = [];

  constructor() {
    this.#own(this.folder);
  }

  #own(path) {
    if (other.uid !== undefined) chownSync(path, other.uid, other.gid);
  }

  /** Makes a folder inside. */
  inside(name) {
    const path = join(this.folder, name);
    mkdirSync(path);
    this.#own(path);
    return path;
  }

  /** The id of a process. */
  pid(name) {
    return this.#running.find((one) => one.name === name).child.pid;
  }

  /** What a process has written. */
  log(name) {
    return readFileSync(join(this.folder, `${name}.log`), 'utf8');
  }

  /** What all processes have written, with their names. */
  logs() {
    return this.#running.map(({ name }) => [name, this.log(name)]);
  }

  /** Runs a program of the system as an unprivileged user, to its end. */
  run(program, args) {
    return execFileSync(program, args, { ...other, cwd: this.folder, encoding: 'utf8', stdio: 'pipe' });
  }

  /** Starts a server of the system as an unprivileged user; `name` names its log. */
  server(name, program, args, options = {}) {
    const log = openSync(join(this.folder, `${name}.log`), 'a');
    const child = spawn(program, args, { ...other, cwd: this.folder, stdio: ['ignore', log, log], ...options });
    closeSync(log);
    this.#watch(name, child);
  }

  /** Starts `rootlight`, waits for the line that says where it listens, and returns the URL for HTTP. */
  async rootlight(name, ...args) {
    const log = openSync(join(this.folder, `${name}.log`), 'a');
    const child = spawn(process.env.ROOTLIGHT, args, { stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    this.#watch(name, child);
    for await (const line of createInterface({ input: child.stdout })) {
      const found = line.match(/^listening (\S+)/);
      if (found) {
        child.stdout.resume();
        return found[1];
      }
    }
    throw new Error(`${name} ended: ${this.log(name)}`);
  }

  /** Starts `rootlight` with a command that does not listen. */
  job(name, ...args) {
    this.server(name, process.env.ROOTLIGHT, args, { uid: undefined, gid: undefined });
  }

  #watch(name, child) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.once('error', (error) => console.error(`${name}: ${error.message}`));
    this.#running.push({ name, child, ended });
  }

  /** Ends all processes, the newest first, and removes the folder. Returns the names of those that had ended before. */
  async end() {
    const early = this.#running.filter(({ child }) => child.exitCode !== null || child.signalCode !== null);
    for (const { child, ended } of this.#running.reverse()) {
      const kill = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
      // PostgreSQL waits for its clients at SIGTERM; they have ended before it.
      if (child.exitCode === null && child.signalCode === null && child.pid && child.kill('SIGTERM')) await ended;
      clearTimeout(kill);
    }
    rmSync(this.folder, { recursive: true, force: true });
    return early.map(({ name }) => name);
  }
}
