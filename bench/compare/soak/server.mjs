// The server of the soak: its process, its keys, its certificate, and connections to it.
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, renameSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { startProgram } from '../../../tests/clients/program.mjs';

export const { WebSocket } = createRequire(new URL('../../../tests/clients/', import.meta.url))('ws');

const run = promisify(execFile);
const PROGRAM = process.env.ROOTLIGHT;
/** Keys that the load uses at the same time. */
const KEYS = 4;
/** Milliseconds between two certificates. */
const CERTIFICATE_INTERVAL = 10_000;
/** Longest time in milliseconds until the server uses a new certificate. */
const CERTIFICATE_LIMIT = 10_000;

export class Server {
  #folder;
  #child;
  #keys = [];
  #turn = 0;
  /** Whether it serves TLS. */
  secure = false;

  constructor(folder) {
    this.#folder = folder;
    const help = spawnSync(PROGRAM, ['dev', '--help'], { encoding: 'utf8' }).stdout;
    this.secure = help.includes('--tls-cert') && spawnSync('openssl', ['version']).status === 0;
  }

  #path(name) {
    return join(this.#folder, name);
  }

  /** Runs `rootlight keys`. */
  async keys(...args) {
    const { stdout } = await run(PROGRAM, ['keys', ...args, '--api-keys', this.#path('keys.redb')]);
    return stdout.trim();
  }

  async start() {
    for (let i = 0; i < KEYS; i++) this.#keys.push(await this.keys('create', '--state-override', 'on'));
    const flags = ['--block-time', 'manual', '--revert-code', '3', '--http-port', '0', '--api-keys', this.#path('keys.redb')];
    if (this.secure) {
      await this.#certificate();
      flags.push('--tls-cert', this.#path('cert.pem'), '--tls-key', this.#path('key.pem'));
    }
    const { child, url } = await startProgram(PROGRAM, ['dev', '--silent', ...flags]);
    process.once('exit', () => child.kill('SIGKILL'));
    this.port = Number(new URL(url).port);
    this.#child = child;
    child.once('exit', () => (child.ended = true));
  }

  async stop() {
    if (!this.#child || this.#child.ended) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
  }

  /** One of the keys of the load, in turn. */
  key() {
    return this.#keys[this.#turn++ % KEYS];
  }

  /** Resident memory in MiB. */
  resident() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'))[1]) / 1024;
  }

  /** Opens a WebSocket. */
  socket(key) {
    return new WebSocket(`${this.secure ? 'wss' : 'ws'}://127.0.0.1:${this.port}/websocket/${key}`, {
      rejectUnauthorized: false,
      perMessageDeflate: false,
    });
  }

  /** A function that sends a body over connections of its own, and resolves with the status and the text. */
  client() {
    const { request, Agent } = this.secure ? https : http;
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
    const headers = { 'content-type': 'application/json' };
    return (key, body) => new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.port, path: `/${key}`, method: 'POST', agent, headers };
      const sent = request(options, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (data) => (text += data));
        response.on('end', () => resolve({ status: response.statusCode, text }));
        response.on('error', reject);
      });
      // The server closes connections that are idle for long; such a request was not answered and is sent again.
      sent.on('error', (error) => (sent.reusedSocket && error.code === 'ECONNRESET' ? resolve(this.client()(key, body)) : reject(error)));
      sent.end(body);
    });
  }

  async #certificate() {
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => this.#path(name));
    const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    await run('openssl', [...request, '-subj', '/CN=localhost', '-keyout', `${key}.new`, '-out', `${cert}.new`]);
    renameSync(`${key}.new`, key);
    renameSync(`${cert}.new`, cert);
  }

  #fingerprint() {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: this.port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      });
      socket.on('error', reject);
    });
  }

  /** Replaces the certificate again and again, and waits until new connections get it. */
  async replaceCertificates(statistics, running) {
    while (this.secure && running()) {
      const before = await this.#fingerprint();
      await this.#certificate();
      this.#child.kill('SIGHUP');
      const limit = Date.now() + CERTIFICATE_LIMIT;
      while ((await this.#fingerprint()) === before) {
        if (Date.now() > limit) {
          statistics.fault('a new certificate is not used');
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      statistics.event('certificates replaced');
      await new Promise((resolve) => setTimeout(resolve, CERTIFICATE_INTERVAL));
    }
  }
}
