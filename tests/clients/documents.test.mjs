// The commands and snippets of the documents, run as they are written, in a foreign project outside this repository. What they are, and what
// stands for the reader's own node, is in documents/list.mjs.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checksums } from '../../pkg/scripts/checksums.mjs';
import { call, startChain } from './chain.mjs';
import { blocks, installs as installsOf } from './documents/blocks.mjs';
import { DOCUMENTS, PUBLIC_MARKS } from './documents/list.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT = { timeout: 120_000 };
const KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

const NPM = { npm_config_audit: 'false', npm_config_fund: 'false', npm_config_prefer_offline: 'true' };

let folder, project, chain, account, installs;

/** The ABI of the tour's contract, as viem's `parseAbi` writes it. */
const COUNTER = JSON.stringify([
  { name: 'number', type: 'function', stateMutability: 'view', inputs: [], outputs: [{ type: 'uint256' }] },
  { name: 'increment', type: 'function', stateMutability: 'nonpayable', inputs: [], outputs: [] },
]);

/** An amount in wei as RBTC, with a digit 1 before its hexadecimal ones if it is a lie. */
function rbtc(wei, isLie) {
  const text = BigInt(isLie ? wei.replace('0x', '0x1') : wei).toString().padStart(19, '0');
  return `${text.slice(0, -18)}.${text.slice(-18)}`.replace(/\.?0+$/, '');
}

const documentOf = (name) => blocks(readFileSync(join(ROOT, name), 'utf8'));
const blockOf = (name, begins) => documentOf(name).find(({ text }) => text.startsWith(begins));

/** Runs a program to its end; returns what it prints. */
function run(cwd, program, args, env = {}) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env: { ...process.env, ...env }, encoding: 'utf8', timeout: 100_000 });
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-foreign-'));
  // As README has it, the repository lies beside the project.
  symlinkSync(ROOT, join(folder, 'rootlight'));
  project = join(folder, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'foreign', private: true, type: 'module' }));
  const [, line] = blockOf('README.md', 'cargo xtask wasm').text.split('\n');
  assert.match(line, /^npm install /);
  [installs] = line.split('  ');
  run(project, 'sh', ['-c', line], NPM);
  chain = await startChain();
  [account] = await call(chain.url, 'eth_accounts');
  await call(chain.url, 'evm_mine');
}, LIMIT);
after(async () => {
  await chain?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A block with the reader's own things in it. */
function written(text, replace, names) {
  const replaced = replace.reduce((before, [from, to]) => {
    assert.ok(before.includes(from), `the block has no ${from}`);
    return before.replaceAll(from, to);
  }, text);
  return Object.entries(names).reduce((before, [name, value]) => before.replaceAll(name, value), replaced);
}

/** What a module needs that stands before it in a reader's file, and what it must print. */
const SCRIPTS = {
  balance: { prints: async () => `${await call(chain.url, 'eth_getBalance', account, 'latest')}\n` },
  number: { prints: async () => `${Number(await call(chain.url, 'eth_blockNumber'))}n\n` },
  dev: { after: "if ((await import('node:process')).exitCode) throw 0;", prints: async () => '' },
  wallet: {
    before: () => `globalThis.window = Object.assign(new EventTarget(), { ethereum: { request: async () => [] } });
      window.addEventListener('eip6963:announceProvider', ({ detail }) => console.log(detail.info.name));
      const upstreams = '${chain.url}';`,
    after: 'provider.close();',
    prints: async () => 'My wallet, verified\n',
  },
  liar: {
    async prints() {
      const wei = await call(chain.url, 'eth_getBalance', account, 'latest');
      return `a wallet that trusts its node: ${rbtc(wei, true)} RBTC\na wallet with Rootlight: ${rbtc(wei, false)} RBTC\n`;
    },
  },
  counter: {
    async prints() {
      // After the snapshot was restored, the newest block is that of the first increment.
      const { transactions: [{ to }] } = await call(chain.url, 'eth_getBlockByNumber', 'latest', true);
      return `two increments: 2n\nback at the snapshot: 1n\ncontract ${to}\n${COUNTER}\n`;
    },
  },
  verify: {
    async before() {
      const hash = await call(chain.url, 'eth_sendTransaction', { from: account, to: account });
      const receipt = await call(chain.url, 'eth_getTransactionReceipt', hash);
      const block = await call(chain.url, 'eth_getBlockByHash', receipt.blockHash, false);
      const nodes = await call(chain.url, 'rsk_getTransactionReceiptNodesByHash', receipt.blockHash, hash);
      const proof = await call(chain.url, 'eth_getProof', account, [], receipt.blockNumber);
      return `const { block, receipt, nodes, proof } = ${JSON.stringify({ block, receipt, nodes, proof })};`;
    },
    after: 'console.log(facts.hash === block.hash, rules.checked.length > 0);',
    prints: async () => 'true true\n',
  },
};

async function script({ script: name, replace }, text, at) {
  const { before = () => '', after = '', prints } = SCRIPTS[name];
  const file = join(project, `${name}-${at}.mjs`);
  writeFileSync(file, [await before(), written(text, replace, { URL: chain.url, ACCOUNT: account }), after].join('\n'));
  assert.equal(run(project, process.execPath, [file]), await prints(), `${name} of block ${at}`);
}

/** Starts a command that serves; resolves to its address once it listens. */
function serving(line, env) {
  // A group of its own, which Ctrl-C reaches as a whole: npx starts further processes.
  const child = spawn('sh', ['-c', line], { cwd: project, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  return new Promise((resolve, reject) => {
    let [output, errors] = ['', ''];
    child.stderr.on('data', (data) => (errors += data));
    child.stdout.on('data', (data) => {
      output += data;
      const [, url] = /^listening (http\S+)/m.exec(output) ?? [];
      if (url) resolve({ url, output, stop: () => (process.kill(-child.pid, 'SIGINT'), ended) });
    });
    ended.then((code) => reject(new Error(`${line} ended with ${code}: ${output}${errors}`)));
  });
}

/** Commands that serve until they are ended. */
const SERVES = /^(?:npx )?rootlight(?: (?:dev|light)\b(?!.*--help)| --)/;

/** Runs the lines of a block; returns what each printed, and the address of the last that served. */
async function lines(text, names, cwd = project) {
  const path = [dirname(process.env.ROOTLIGHT), process.env.PATH].join(delimiter);
  const env = { ...process.env, PATH: path, NODE: chain.url, ...names };
  const running = [];
  const outputs = [];
  try {
    for (const line of text.replaceAll('\\\n', ' ').split('\n').filter((line) => line !== '' && !line.startsWith('#'))) {
      const command = Object.entries(names).reduce((before, [name, value]) => before.replaceAll(name, value), line);
      if (SERVES.test(command)) {
        running.push(await serving(command, env));
        names.SERVED = new URL(running.at(-1).url).host;
        outputs.push(running.at(-1).output);
      } else {
        outputs.push(run(cwd, 'sh', ['-c', command], env));
        const [, key] = /([\w-]{8})\.[\w-]{43}/.exec(outputs.at(-1)) ?? [];
        if (key) names.KEYID = key;
      }
    }
    return outputs;
  } finally {
    for (const { stop } of running) await stop();
  }
}

const SHELL = {
  npx: ([output]) => assert.match(output, new RegExp(KEY)),
  dev([banner, help]) {
    assert.match(banner, new RegExp(KEY));
    assert.match(help, /--block-time/);
  },
  light([, verification, health]) {
    assert.equal(JSON.parse(verification).result.start, 'upstream');
    assert.equal(JSON.parse(health).ready, true);
  },
  serves: ([output]) => assert.match(output, /^listening/),
  keys([created, , listed, , revoked]) {
    assert.ok(listed.includes(created.split('.')[0]) && revoked !== undefined);
  },
  receipt: (outputs) => assert.match(outputs.at(-1), /^verified$/m),
  operator([, health, upstreams]) {
    assert.equal(JSON.parse(health).ready, true);
    assert.equal(JSON.parse(upstreams).result[0].lies, 0);
  },
  repository([honest, changed]) {
    assert.match(honest, /^verified$/m);
    if (changed !== undefined) assert.match(changed, /FAILED(?:.|\n)*^refused$/m);
  },
};

async function shell({ shell: name, replace }, text) {
  const socket = chain.url.replace('http', 'ws');
  const names = { URL: chain.url, SOCKET: socket };
  if (name === 'receipt') {
    names.TX = await call(chain.url, 'eth_sendTransaction', { from: account, to: account });
    names.BLOCK = (await call(chain.url, 'eth_getTransactionReceipt', names.TX)).blockHash;
    // One script: a function that its later lines call.
    const path = [dirname(process.env.ROOTLIGHT), process.env.PATH].join(delimiter);
    return SHELL[name]([run(project, 'sh', ['-c', written(text, replace, {})], { PATH: path, NODE: chain.url, TX: names.TX, BLOCK: names.BLOCK })]);
  }
  return SHELL[name](await lines(written(text, replace, {}), names, name === 'repository' ? ROOT : project));
}

/** Checks of blocks that are neither modules nor commands to run here. */
const CHECKS = {
  /** Commands that build this repository: their folders and tasks exist. */
  cargo(text) {
    for (const [, path] of text.matchAll(/--path (\S+)/g)) assert.match(readFileSync(join(ROOT, path, 'Cargo.toml'), 'utf8'), /^\[\[?(?:bin|package)\]/m, path);
    const tasks = readFileSync(join(ROOT, 'xtask/src/main.rs'), 'utf8');
    for (const [, task] of text.matchAll(/cargo xtask (\w+)/g)) assert.ok(tasks.includes(`"${task}"`), task);
  },
  /** Run before all tests. */
  install: (text) => assert.ok(text.includes(installs) && existsSync(join(project, 'node_modules/rootlight/index.js')) && existsSync(join(project, 'node_modules/viem'))),
  hardhat(text) {
    const other = join(folder, 'hardhat');
    mkdirSync(other);
    writeFileSync(join(other, 'hardhat.config.js'), text);
    // `tests/clients/hardhat2` runs the configuration with hardhat; here its extension of the provider is only taken.
    const hardhat = join(other, 'node_modules/hardhat');
    mkdirSync(hardhat, { recursive: true });
    writeFileSync(join(hardhat, 'config.js'), 'exports.extendProvider = () => {};');
    const { networks } = createRequire(join(other, 'x.js'))('./hardhat.config.js');
    assert.deepEqual([networks.rskRegtest.url, networks.rskRegtest.chainId], ['http://127.0.0.1:4444', 33]);
    assert.equal(networks.rskRegtest.accounts, undefined, 'the chain signs, and impersonates');
  },
  /** `tests/clients/hardhat3` runs its networks with hardhat; here its form is read, without the plugins. */
  async hardhat3(text) {
    const file = join(folder, 'hardhat3.config.mjs');
    writeFileSync(file, text.replace(/^import toolbox .*$/m, 'const toolbox = {};'));
    const { networks, solidity } = (await import(file)).default;
    assert.deepEqual([networks.rskRegtest.type, networks.rskRegtest.url, networks.rskRegtest.chainId], ['http', 'http://127.0.0.1:4444', 33]);
    assert.equal(solidity.settings.evmVersion, 'shanghai');
  },
  /** The file starts the command that its first line names. */
  async config(text) {
    const [command] = /`([^`]+)`/.exec(text).slice(1);
    const own = [['"mainnet"', '"regtest"'], ['https://one.example/KEY', 'URL'], ['wss://two.example', 'SOCKET'], ['http-port = 4444', 'http-port = 0']];
    const file = written(text, own, { URL: chain.url, SOCKET: chain.url.replace('http', 'ws') });
    writeFileSync(join(project, 'rootlight.toml'), file, { mode: 0o600 });
    const [listening] = await lines(command, {});
    assert.match(listening, /^listening/);
  },
  foundry: (text) => assert.ok(text.includes(`KEY=${KEY}`)),
  async vite(text) {
    const file = join(project, 'vite.config.mjs');
    writeFileSync(file, text);
    const [plugin] = (await import(file)).default.plugins;
    assert.deepEqual(plugin.config(), { optimizeDeps: { exclude: ['rootlight'] } });
  },
};

for (const [name, list] of Object.entries(DOCUMENTS)) {
  test(`every block of ${name} is in the list, in its order`, () => {
    const found = documentOf(name);
    const unlike = found.find(({ text }, at) => !text.startsWith(list[at]?.begins));
    assert.equal(unlike && `line ${unlike.line}: ${unlike.text}`, undefined);
    assert.equal(found.length, list.length);
  });
  list.forEach((entry, at) => {
    const text = () => documentOf(name)[at].text;
    const title = `${name}: ${entry.begins.split('\n')[0]}`;
    if (entry.script) test(title, LIMIT, () => script(entry, text(), `${name.replaceAll(/\W/g, '')}${at}`));
    else if (entry.shell) test(title, LIMIT, () => shell(entry, text()));
    else if (entry.check) test(title, LIMIT, () => CHECKS[entry.check](text()));
    // A reader sees what it needs.
    else test(`${title} needs ${entry.needs}`, () => assert.match(text(), entry.marks ?? PUBLIC_MARKS));
  });
}

/** The documents, and those of the examples, by their names. */
const DOCUMENT_TEXTS = [...Object.keys(DOCUMENTS), ...readdirSync(join(ROOT, 'examples'), { recursive: true }).filter((name) => /^[^/]+\/README\.md$/.test(name)).map((name) => `examples/${name}`)]
  .map((name) => [name, installsOf(readFileSync(join(ROOT, name), 'utf8'))]);

test('a document that installs the package from the registry says how it is installed before it is there', () => {
  assert.ok(DOCUMENT_TEXTS.some(([, { published }]) => published.length > 0));
  for (const [name, { published, folder: other }] of DOCUMENT_TEXTS) {
    assert.ok(published.length === 0 || other.some((command) => command.includes('--install-links')), `${name}: ${published.join('; ')}`);
  }
});

// `PATH` and `../..` are the repository's folder, which lies beside the project here.
const FOLDER_INSTALLS = DOCUMENT_TEXTS.flatMap(([name, { folder: commands }]) => commands.map((command) => [command.replace(/PATH\/pkg|\.\.\/\.\.\/pkg/, '../rootlight/pkg'), name]));
for (const [command, name] of new Map(FOLDER_INSTALLS)) {
  test(`${name}: ${command} brings the package into an empty project`, LIMIT, () => {
    const other = mkdtempSync(join(folder, 'installed-'));
    writeFileSync(join(other, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    run(other, 'sh', ['-c', command], NPM);
    for (const wanted of command.split(' ').slice(2)) {
      if (!wanted.startsWith('-')) assert.ok(existsSync(join(other, 'node_modules', wanted.endsWith('/pkg') ? 'rootlight/dist/rootlight_bg.wasm' : wanted)), wanted);
    }
    run(other, process.execPath, ['--input-type=module', '-e', "await import('rootlight');"]);
  });
}

test('the checksums of the package are checked as its README says', LIMIT, () => {
  const [, command] = /`(\(cd node_modules\/rootlight\/dist && sha256sum --check SHA256SUMS\))`/.exec(readFileSync(join(ROOT, 'pkg/README.md'), 'utf8'));
  // npm writes the checksums when it packs; a linked folder has none.
  const packed = join(folder, 'packed');
  const dist = join(packed, 'node_modules/rootlight/dist');
  cpSync(join(ROOT, 'pkg/dist'), dist, { recursive: true });
  writeFileSync(join(dist, 'SHA256SUMS'), checksums(dist));
  assert.match(run(packed, 'sh', ['-c', command]), /rootlight_bg\.wasm: OK/);
});
