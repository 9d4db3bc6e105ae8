// A service on many machines, here all on one machine: a cluster of Redis, PostgreSQL, two backends of a development chain, an
// indexer, and HAProxy before three front ends without API keys and before three with them.
import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call } from '../program.mjs';
import { freePorts, Processes, wait } from './processes.mjs';

/** The configuration that operators are given. */
const BALANCER = fileURLToPath(new URL('../../../docs/compose/haproxy.cfg', import.meta.url));

/** The first of these programs that exists. */
function program(...names) {
  const folders = [...process.env.PATH.split(':'), '/usr/sbin', '/usr/bin'];
  const found = names.flatMap((name) => folders.map((folder) => resolve(folder, name))).find((path) => existsSync(path));
  if (!found) throw new Error(`${names[0]} is not installed: \`cargo xtask setup\` does`);
  return found;
}

/** Three masters and three replicas; returns their addresses. */
export async function redis(processes) {
  // The program redis-check-rdb in Debian's redis-tools is the server program itself: it acts as the server if its argument 0 is
  // `redis-server`.
  const server = program('redis-server', 'valkey-server', 'redis-check-rdb');
  const client = program('redis-cli', 'valkey-cli');
  const ports = await freePorts(12);
  const places = ports.slice(0, 6).map((port) => `127.0.0.1:${port}`);
  const cli = (place, ...args) => processes.run(client, ['-p', place.split(':')[1], ...args]).trim();
  for (const [index, port] of ports.slice(0, 6).entries()) {
    const settings = { port, bind: '127.0.0.1', dir: processes.inside(`redis${index}`), save: '', appendonly: 'no' };
    const cluster = { 'cluster-enabled': 'yes', 'cluster-port': ports[index + 6], 'cluster-node-timeout': 1000 };
    const flags = Object.entries({ ...settings, ...cluster }).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    processes.server(`redis${index}`, server, flags, { argv0: 'redis-server' });
  }
  for (const place of places) await wait('Redis', () => attempt(() => cli(place, 'ping') === 'PONG'));
  const [first, ...others] = places;
  const slots = [[0, 5460], [5461, 10922], [10923, 16383]];
  slots.forEach(([from, to], index) => cli(places[index], 'cluster', 'addslotsrange', from, to));
  slots.forEach((_, index) => cli(places[index], 'cluster', 'set-config-epoch', index + 1));
  others.forEach((place, index) => cli(first, 'cluster', 'meet', ...place.split(':'), ports[index + 7]));
  for (const index of [0, 1, 2]) {
    const master = cli(places[index], 'cluster', 'myid');
    await wait('a replica', () => cli(places[index + 3], 'cluster', 'replicate', master) === 'OK');
  }
  for (const place of places) await wait('the cluster', () => cli(place, 'cluster', 'info').includes('cluster_state:ok'));
  return places.map((place) => `redis://${place}`);
}

/** PostgreSQL on a Unix socket; returns the address of its database. */
export async function postgres(processes) {
  // Debian keeps its programs off PATH.
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const find = (name) => program(...versions.map((version) => `${debian}/${version}/bin/${name}`), name);
  const data = processes.inside('postgres');
  processes.run(find('initdb'), ['--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C', '-U', 'rootlight', '-D', data]);
  const settings = ['listen_addresses=', 'fsync=off', 'max_connections=200'].flatMap((setting) => ['-c', setting]);
  processes.server('postgres', find('postgres'), ['-D', data, '-k', processes.folder, ...settings]);
  const ready = find('pg_isready');
  await wait('PostgreSQL', () => attempt(() => processes.run(ready, ['-q', '-h', processes.folder]) === ''));
  return `postgres://rootlight@${encodeURIComponent(processes.folder)}/postgres`;
}

function attempt(work) {
  try {
    return work();
  } catch {
    return false;
  }
}

/** HAProxy before front ends; returns its URL. */
async function balancer(processes, name, frontEnds) {
  const [port] = await freePorts(1);
  const addresses = frontEnds.map((url, index) => [`FRONT_END_${index + 1}`, new URL(url).host]);
  const [RUN_AS, RUN_AS_GROUP] = ['-un', '-gn'].map((what) => processes.run('id', [what]).trim());
  const user = { RUN_AS, RUN_AS_GROUP };
  const env = { ...process.env, ...user, BALANCER: `127.0.0.1:${port}`, ...Object.fromEntries(addresses) };
  processes.server(name, program('haproxy'), ['-W', '-db', '-f', BALANCER], { env });
  const url = `http://127.0.0.1:${port}`;
  await wait('HAProxy', () => fetch(`${url}/health`).then(({ status }) => status === 200, () => false));
  return url;
}

/** Starts the whole service; returns its URLs, which the tests read from `ROOTLIGHT_SERVICE`. */
export async function start(processes) {
  const chain = processes.rootlight('chain', 'dev', '--http-port', '0');
  const [stores, database, control] = await Promise.all([redis(processes), postgres(processes), chain]);
  const { hash } = await call(control, 'eth_getBlockByNumber', '0x0', false);
  const network = ['--network', 'regtest', '--checkpoint', `0:${hash}`, '--http-port', '0'];
  const socket = control.replace('http', 'ws');
  const light = await processes.rootlight('light', 'light', ...network, '--upstream', socket);
  processes.job('index', 'index', ...network.slice(0, 4), '--from', socket, '--index', database);
  const shared = [...stores.flatMap((url) => ['--cluster', url]), '--index', database];
  const serve = (name, ...flags) => {
    const backends = ['--backend', socket, '--backend', light];
    const proxy = ['--profile', 'hosted', '--trusted-proxy', '127.0.0.1'];
    return processes.rootlight(name, 'serve', ...network, ...backends, ...shared, ...proxy, ...flags);
  };
  const group = (name, ...flags) => Promise.all([1, 2, 3].map((number) => serve(`${name}${number}`, ...flags)));
  // The first front end makes the tables.
  const open = await group('open');
  const keyed = await group('keyed', '--keys', '--revert-code', '3');
  return {
    control,
    shared,
    open: { url: await balancer(processes, 'balancer', open), frontEnds: open },
    keyed: { url: await balancer(processes, 'keyed-balancer', keyed), frontEnds: keyed },
  };
}

export { Processes };
