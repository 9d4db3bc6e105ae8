// A measured node: its process, its processor time and memory, and one kept-alive connection.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';

/** Longest wait for a node's first response, in milliseconds. */
const START_LIMIT = 60_000;

/** Longest run of a script, in milliseconds. */
const RUN_LIMIT = 600_000;

/** Processes that are killed when this one ends for any reason. */
const running = new Set();
setTimeout(() => {
  console.error('ended: out of time');
  process.exit(1);
}, RUN_LIMIT).unref();
process.once('exit', () => running.forEach((child) => child.kill()));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The text of a chunked body (RFC 9112, section 7.1) that begins at `start`. */
function unchunked(bytes, start) {
  const parts = [];
  for (let at = start; ;) {
    const line = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16);
    if (!(size > 0)) return Buffer.concat(parts).toString();
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

/** JSON-RPC over one HTTP connection, one request at a time. The connection is opened again if the node has closed it. */
export class Connection {
  #port;
  #socket;
  #waiting;
  #received = Buffer.alloc(0);

  constructor(port) {
    this.#port = port;
  }

  #open() {
    this.#received = Buffer.alloc(0);
    const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true });
    socket.on('data', (data) => this.#read(data));
    const lost = () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#settle('reject', new Error('connection closed'));
    };
    socket.on('error', lost);
    socket.on('close', lost);
    return socket;
  }

  #settle(how, value) {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.[how](value);
  }

  #read(data) {
    this.#received = Buffer.concat([this.#received, data]);
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = this.#received.toString('latin1', 0, end).toLowerCase();
    const length = /content-length: *(\d+)/.exec(head);
    const whole = end + 4 + Number(length?.[1] ?? 0);
    if (length && this.#received.length < whole) return;
    // The last chunk is empty.
    if (!length && !this.#received.subarray(-7).equals(Buffer.from('\r\n0\r\n\r\n'))) return;
    const body = length ? this.#received.toString('utf8', end + 4, whole) : unchunked(this.#received, end + 4);
    this.#received = Buffer.alloc(0);
    if (head.includes('connection: close')) this.close();
    this.#settle('resolve', body);
  }

  /** Builds the bytes of a request before it is timed. */
  static request(body) {
    const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n';
    return Buffer.from(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  /** Sends a built request; returns the response's text. */
  send(request) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket ??= this.#open();
      this.#socket.write(request);
    });
  }

  /** Makes a call; returns its result. */
  async call(method, ...params) {
    const { result, error } = JSON.parse(await this.send(Connection.request(call(method, ...params))));
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  close() {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
  }
}

/** Builds a request's JSON. */
export function call(method, ...params) {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
}

/** Processor seconds that all threads of a process have used; undefined if it has ended. */
export function processorTime(pid) {
  let fields;
  try {
    fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  } catch {
    return undefined;
  }
  // Fields 14 and 15 of proc(5), in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** A node that is started with a command line and listens on `port`. */
export class Node {
  static async start(command, port) {
    const started = performance.now();
    const child = spawn(command[0], command.slice(1), { stdio: 'ignore', cwd: tmpdir() });
    running.add(child);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const node = Object.assign(new Node(), { child, ended, port });
    child.once('exit', () => {
      node.gone = true;
      running.delete(child);
    });
    node.connection = await node.#firstAnswer(started);
    node.started = performance.now() - started;
    return node;
  }

  async #firstAnswer(started) {
    const connection = new Connection(this.port);
    for (;;) {
      try {
        await connection.call('eth_blockNumber');
        if (!this.gone) return connection;
        throw new Error(`something else listens on port ${this.port}`);
      } catch (error) {
        if (this.gone || performance.now() - started > START_LIMIT) throw error;
        await sleep(1);
      }
    }
  }

  /** Processor seconds used so far. */
  processorTime() {
    return processorTime(this.child.pid);
  }

  /** Resident memory in MiB. */
  resident() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8'))[1]) / 1024;
  }

  async stop() {
    this.connection?.close();
    this.child.kill('SIGTERM');
    await this.ended;
  }
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
