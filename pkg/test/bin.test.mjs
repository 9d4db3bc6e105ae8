// The program of the package: commands, flags, exit codes, and which files need its library.
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ask, runProgram, startProgram } from './lib/program.mjs';
import { LIMIT } from './lib/wait.mjs';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
let folder;
before(() => (folder = mkdtempSync(join(tmpdir(), 'rootlight-bin-'))));
after(() => rmSync(folder, { recursive: true, force: true }));

test('the development chain prints accounts, keys and addresses, and ends with Ctrl-C', LIMIT, async () => {
  const program = await startProgram(['dev', '--http-port', '0', '--accounts', '3', '--balance', '5', '--client-version', 'anvil/x']);
  const text = program.lines.join('\n');
  assert.match(text, /\(0\) 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 {2}0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80/);
  assert.match(text, /\(2\) 0x.*\n {2}5 RBTC each, m\/44'.* of: test test/);
  assert.ok(text.includes(`HTTP       ${program.url}\n`) && text.includes(`WebSocket  ${program.socket}\n`), text);
  assert.match(text, /Chain id 33 \(regtest\), genesis 0x[0-9a-f]{64}/);
  assert.equal((await ask(program.url, 'web3_clientVersion')).result, 'anvil/x');
  const { code, signal } = await program.stop();
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
  await assert.rejects(fetch(program.url));
});

test('a chain begins on a block of another one, and says so', LIMIT, async () => {
  const network = await startProgram(['dev', '--http-port', '0']);
  try {
    await ask(network.url, 'hardhat_mine', ['0x5']);
    const { hash } = (await ask(network.url, 'eth_getBlockByNumber', ['0x3', false])).result;
    for (const block of ['3', `3:${hash}`]) {
      const program = await startProgram(['dev', '--http-port', '0', '--accounts', '1', '--fork', network.url, '--fork-block', block]);
      assert.ok(program.lines.join('\n').includes(`Chain id 33, fork at block 3 ${hash}`), program.lines.join('\n'));
      const [from] = (await ask(program.url, 'eth_accounts')).result;
      await ask(program.url, 'eth_sendTransaction', [{ from, to: from, value: '0x1' }]);
      assert.equal((await ask(program.url, 'eth_blockNumber')).result, '0x4');
      const answer = await ask(program.url, 'hardhat_reset', [{ forking: { jsonRpcUrl: 'http://127.0.0.1:9' } }]);
      assert.equal(answer.error.code, -32002);
      await program.stop();
    }
    assert.equal((await ask(network.url, 'eth_blockNumber')).result, '0x5');
  } finally {
    await network.stop();
  }
});

test('flags come from the environment too, and those of the command line count first', LIMIT, async () => {
  const program = await startProgram(['--http-port', '0', '--accounts', '1'], { ROOTLIGHT_ACCOUNTS: '7', ROOTLIGHT_BLOCK_TIME: 'manual', ROOTLIGHT_SILENT: 'true' });
  try {
    assert.deepEqual(program.lines, [`listening ${program.url} ${program.socket}`]);
    const [from] = (await ask(program.url, 'eth_accounts')).result;
    await ask(program.url, 'eth_sendTransaction', [{ from, to: from }]);
    assert.equal((await ask(program.url, 'eth_blockNumber')).result, '0x0', 'nothing is mined by itself');
  } finally {
    await program.stop('SIGTERM');
  }
});

test('wrong usage is told with what to do', LIMIT, async () => {
  for (const [args, words] of [
    [['dev', '--chain-id', '5'], /^error: dev: unknown flag --chain-id: rootlight dev --help lists the flags$/],
    [['dev', '--port=8545'], /unknown flag --port; there is --http-port and --ws-port: rootlight dev --help/],
    [['--nothing'], /unknown flag --nothing/],
    [['dev', '--accounts', 'x'], /--accounts: 'x' is not a whole number/],
    [['dev', '--mnemonic'], /--mnemonic needs a value: WORDS/],
    [['dev', '--silent=1'], /--silent takes no value/],
    [['dev', 'now'], /'now' is not a flag/],
    [['dev', '--fork-block', '5'], /--fork-block and --unproven need --fork/],
    [['dev', '--fork', 'http://127.0.0.1:1/', '--hardfork', 'iris300'], /--fork: its block takes the place of/],
    [['dev', '--fork', 'http://127.0.0.1:1/', '--fork-block', '5:0x1'], /--fork-block: give a number, or a number with its hash/],
    [['dev', '--hardfork', 'london'], /hardfork: "london" is not one of/],
    [['dev', '--http-port', '70000'], /--http-port: 70000 is not a port/],
    [['dev', '--block-time', 'soon'], /^error: --block-time: "soon"/],
    [['dev', '--batch-limit', '0'], /^error: --batch-limit: not from 1 to/],
    [['dev', '--mnemonic', 'one two'], /^error: --mnemonic: this has 2 words/],
    [['dev', '--mnemonic', `${'test '.repeat(10)}tset junk`], /^error: --mnemonic: word 11 is not in BIP-39's English list$/],
    [['dev', '--mnemonic', 'test '.repeat(12)], /^error: --mnemonic: the checksum is wrong; a word is missing or mistyped$/],
    [['dev', '--fork', '127.0.0.1:4444'], /^error: --fork is not a URL: begin with http/],
    [['dev', '--genesis', 'no/file'], /^error: --genesis no\/file: there is no such file: check the path$/],
    [['dev', '--genesis', PACKAGE], /^error: --genesis .*: this is a folder: give the path of a file$/],
    [['dev', '--genesis', fileURLToPath(import.meta.url)], /^error: --genesis .*: this is not JSON: give the allocation/],
    [['dev', '--http-port', '0', '--cors', 'https://a.example,b.example'], /^error: --cors: entry 2 is no origin as browsers send it, SCHEME:\/\/HOST/],
    [['serve'], /there is no command 'serve' in the npm package: rootlight --help/],
    [['toString'], /there is no command 'toString'/],
    [['light'], /--upstream is needed/],
    [['light', '--upstream', 'node/KEY'], /--upstream number 1 is not a URL: begin with http/],
    [['light', '--upstream', 'localhost:4444'], /--upstream number 1 is not a URL: begin with http/],
    [['light', '--upstream', 'http://127.0.0.1:1/', '--checkpoint', '12'], /--checkpoint: give window, work, built-in, or a block/],
    [['light', '--upstream', 'ftp://node/KEY'], /neither http, https, ws nor wss/],
    [['light', '--upstream', 'http://127.0.0.1:1/KEY', '--network', 'moon'], /^error: --network: 'moon' is not known/],
    [['light', 'https://me@node/KEY'], /^error: light: an address is not a flag/],
    [['https://me@node/KEY'], /^error: there is no command an address in the npm package/],
    [['dev', '--accounts', 'https://me@node/KEY'], /^error: --accounts: an address is not a whole number/],
    [['verify'], /give a file/],
    [['verify', 'tree', 'x'], /'tree' is none of header, receipt, account/],
    [['verify', 'block', 'x'], /only the native program checks whole blocks/],
  ]) {
    const { code, stdout, stderr } = await runProgram(args);
    assert.deepEqual({ code, stdout }, { code: 2, stdout: '' }, `${args}: ${stderr}`);
    assert.match(stderr.trim(), words, String(args));
    assert.doesNotMatch(stderr, /KEY|5$/m, 'no value that may be a secret');
  }
});

test('reverts of calls have the usual code, or that of geth', LIMIT, async () => {
  const { code, stderr } = await runProgram(['dev', '--revert-code', '4']);
  assert.deepEqual([code, stderr.trim()], [2, 'error: --revert-code: give 3 or -32015']);
  for (const [flags, expected] of [[[], -32015], [['--revert-code', '3'], 3]]) {
    const program = await startProgram(['dev', '--http-port', '0', '--silent', ...flags]);
    // Bytes that revert when they are deployed.
    const { error } = await ask(program.url, 'eth_call', [{ data: '0x60006000fd' }, 'latest']);
    await program.stop();
    assert.equal(error.code, expected);
  }
});

test('help names every command and flag', LIMIT, async () => {
  const { code, stdout } = await runProgram(['--help']);
  assert.equal(code, 0);
  for (const command of ['dev', 'light', 'verify']) {
    assert.ok(stdout.includes(`  ${command} `), command);
    const { stdout: own } = await runProgram([command, '--help']);
    assert.ok(own.includes(`Usage: rootlight ${command}`) && /--\w/.test(own), own);
  }
  assert.match((await runProgram(['--version'])).stdout, /^rootlight \d+\.\d+\.\d+\n$/);
});

test('what the program cannot use is told with its flag', LIMIT, async () => {
  for (const [args, words] of [
    [['dev', '--host', 'no-such-host.invalid', '--http-port', '0'], /^error: no-such-host\.invalid:0 cannot be listened on, there is no such host: give a name or an address/],
    [['light', '--http-port', '0', '--upstream', 'http://127.0.0.1:1/', '--data-dir', fileURLToPath(import.meta.url)], /^--data-dir: headers are not stored: a file is in the place of a folder/m],
    [['verify', 'header', 'no/file'], /^error: no\/file: there is no such file: check the path$/],
    [['dev', '--fork', 'http://no-such-host.invalid/SECRETKEY'], /^error: --fork: http:\/\/no-such-host\.invalid: no response: there is no such host: check the address/],
  ]) {
    const { code, stdout, stderr } = await runProgram(args);
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, `${args}: ${stderr}`);
    assert.match(stderr.trim(), words, String(args));
  }
});

test('an upstream that cannot be reached is named without its secrets', LIMIT, async () => {
  const { code, stderr } = await runProgram(['light', '--http-port', '0', '--upstream', 'http://user:PASSWORD@127.0.0.1:1/SECRETKEY', '--checkpoint', `0:${'11'.repeat(32)}`]);
  assert.equal(code, 1, stderr);
  assert.doesNotMatch(stderr, /PASSWORD|SECRETKEY/);
  assert.match(stderr, /error: http:\/\/127\.0\.0\.1:1: .*no response: bad port: start the node/);
});

test('an address that other machines reach is warned of', LIMIT, async () => {
  for (const [host, isLoud] of [['0.0.0.0', true], ['127.0.0.1', false]]) {
    const program = await startProgram(['dev', '--http-port', '0', '--silent', '--host', host]);
    const { errors } = await program.stop();
    assert.equal(errors.includes('LISTENING ON') && errors.includes('--allow-host'), isLoud, errors);
  }
});

test('a port that is in use is named', LIMIT, async () => {
  const first = await startProgram(['dev', '--http-port', '0', '--silent']);
  try {
    const port = new URL(first.url).port;
    const { code, stderr } = await runProgram(['dev', '--http-port', port]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is in use: choose another port with --http-port`));
  } finally {
    await first.stop();
  }
});

test('a light client of the development chain proves it, and serves what it has proven', LIMIT, async () => {
  const chain = await startProgram(['dev', '--http-port', '0', '--silent']);
  const { result: first } = await ask(chain.url, 'eth_getBlockByNumber', ['0x0', false]);
  const light = await startProgram(['light', '--network', 'regtest', '--upstream', chain.url, '--checkpoint', `0:${first.hash}`, '--max-age', '0', '--http-port', '0']);
  try {
    const [account] = (await ask(chain.url, 'eth_accounts')).result;
    assert.equal((await ask(light.url, 'eth_getBalance', [account, 'latest'])).result, (await ask(chain.url, 'eth_getBalance', [account, 'latest'])).result);
    const { result } = await ask(light.url, 'rootlight_verification', ['latest']);
    assert.deepEqual([result.start, result.blockHash], ['checkpoint', first.hash]);
    assert.deepEqual((await ask(light.url, 'eth_accounts')).result, []);
    // Pages of others do not learn who the upstreams are.
    const page = { origin: 'https://page.example' };
    assert.equal((await ask(light.url, 'rootlight_upstreams', [], page)).error.code, 4100);
    assert.ok((await ask(light.url, 'rootlight_upstreams')).result[0].name.startsWith('http://127.0.0.1'));
  } finally {
    assert.equal((await light.stop()).code, 0);
    await chain.stop();
  }
});

test('a file is checked offline: what it proves, or which check fails', LIMIT, async () => {
  const chain = await startProgram(['dev', '--http-port', '0', '--silent']);
  const [holder] = (await ask(chain.url, 'eth_accounts')).result;
  await ask(chain.url, 'evm_mine');
  const { result: block } = await ask(chain.url, 'eth_getBlockByNumber', ['0x1', false]);
  const { result: proof } = await ask(chain.url, 'eth_getProof', [holder, [], '0x1']);
  await chain.stop();
  const file = (name, document) => {
    writeFileSync(join(folder, name), JSON.stringify(document));
    return join(folder, name);
  };
  const header = await runProgram(['verify', file('header.json', { jsonrpc: '2.0', id: 1, result: block }), '--network', 'regtest']);
  assert.deepEqual([header.code, header.stderr], [0, ''], header.stdout);
  assert.match(header.stdout, new RegExp(`^header on regtest\n  proven      block 1 has the hash ${block.hash}\n[^]*\nverified\n$`));
  const account = await runProgram(['verify', file('account.json', { ...proof, stateRoot: block.stateRoot }), '--json', '--network', 'regtest']);
  assert.equal(JSON.parse(account.stdout).verified, true, account.stdout);
  const lie = { ...block, stateRoot: `0x${'11'.repeat(32)}` };
  for (const args of [[], ['--json']]) {
    const failed = await runProgram(['verify', 'header', file('lie.json', lie), '--network', 'regtest', ...args]);
    assert.equal(failed.code, 1, failed.stdout);
    assert.match(failed.stdout, args.length > 0 ? /"verified": false/ : /not verified\n$/);
  }
  const piped = await runProgram(['verify', '-', '--network', 'regtest'], JSON.stringify(block));
  assert.equal(piped.stdout, header.stdout);
  assert.equal((await runProgram(['verify', join(folder, 'none.json')])).code, 1);
});

test('a file is not read beyond its limit, one without an end neither', LIMIT, async () => {
  const most = 64 * 2 ** 20;
  const path = join(folder, 'long.json');
  writeFileSync(path, '0x'.padEnd(most));
  const whole = await runProgram(['verify', 'header', path]);
  assert.deepEqual([whole.code, whole.stderr], [1, ''], 'a file of this length is read');
  writeFileSync(path, '0x'.padEnd(most + 1));
  for (const args of [['verify', path], ['dev', '--genesis', path]]) {
    const { code, stderr } = await runProgram(args);
    assert.deepEqual([code, stderr.trim()], [args[0] === 'dev' ? 2 : 1, `error: ${args.slice(1).join(' ')}: longer than ${most} bytes`]);
  }
  // The program shares its place in a file that it gets as standard input.
  writeFileSync(path, '0x'.padEnd(most + 100));
  const input = openSync(path);
  try {
    const { code, stderr } = await runProgram(['verify', '-'], input);
    assert.deepEqual([code, stderr.trim()], [1, `error: -: longer than ${most} bytes`]);
    assert.equal(readSync(input, Buffer.alloc(200)), 99, 'bytes that the program has left');
  } finally {
    closeSync(input);
  }
  // Comes last, because a program without the limit would fill the memory.
  if (process.platform !== 'win32') assert.match((await runProgram(['verify', '/dev/zero'])).stderr, /^error: \/dev\/zero: longer than /);
});

/** The files that a file of the package reaches, and the packages. */
function reached(from, seen = new Set()) {
  if (seen.has(from)) return seen;
  seen.add(from);
  if (!from.startsWith(PACKAGE)) return seen;
  for (const [, name] of readFileSync(from, 'utf8').matchAll(/(?:from|import\(?)\s*'([^']+)'/g)) {
    reached(name.startsWith('.') ? join(dirname(from), name) : name, seen);
  }
  return seen;
}

test('what pages load reaches neither the program nor its library', () => {
  for (const entry of ['index.js', 'dev.js', 'verify.js', 'worker.js', 'dev-worker.js']) {
    const files = [...reached(join(PACKAGE, entry))];
    assert.ok(files.length > 5, entry);
    assert.deepEqual(files.filter((file) => file.includes('/bin/') || !file.startsWith(PACKAGE)), [], entry);
  }
  assert.ok(reached(join(PACKAGE, 'bin/rootlight.js')).has('ws'));
});
