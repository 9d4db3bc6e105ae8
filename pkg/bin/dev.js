// `rootlight dev`: a development chain over HTTP and WebSocket.
import { openChain } from '../dev-module.js';
import { disconnected, newLife } from '../life.js';
import { COMMANDS } from './commands.js';
import { Usage, address, contents, wrongFlag } from './flags.js';
import { mnemonicFault } from './mnemonic.js';
import { serve } from './server.js';

/** Milliseconds between two polls of subscriptions: the chain may mine by the clock, which no answer reports. */
const POLL_INTERVAL = 200;

/** The default mnemonic and number of accounts. */
const MNEMONIC = 'test test test test test test test test test test test junk';
const ACCOUNTS = 10;

/** The genesis of `--genesis`: `regtest`, or the allocation in a file. */
function genesisOf(file) {
  if (file === undefined || file === 'regtest') return file;
  const wrong = (reason) => new Usage(`--genesis ${file}: ${reason}`);
  let text;
  try {
    text = contents(file).toString();
  } catch ({ message }) {
    throw wrong(message);
  }
  try {
    return JSON.parse(text);
  } catch {
    // Not the parser's error, which repeats the text of the file.
    throw wrong('this is not JSON: give the allocation, as docs/dev.md has it');
  }
}

/** The words of `--mnemonic`, which must be a mnemonic of BIP-39, as the native program demands. */
function mnemonicOf(words) {
  const fault = words === undefined ? undefined : mnemonicFault(words);
  if (fault !== undefined) throw new Usage(`--mnemonic: ${fault}`);
  return words;
}

/** The block of `--fork-block`. */
function forkBlock(text) {
  const [, number, hash] = /^(\d{1,15})(?::(0x[\da-f]{64}))?$/i.exec(text) ?? [];
  if (number === undefined) throw new Usage('--fork-block: give a number, or a number with its hash: N:0xHASH');
  return hash ? { number: Number(number), hash } : Number(number);
}

/** The option `fork` of the flags; undefined without `--fork`. */
function forkOf({ fork: url, 'fork-block': block, unproven, genesis, hardfork, 'genesis-time': time }) {
  if (url === undefined) {
    if (block !== undefined || unproven !== undefined) throw new Usage('--fork-block and --unproven need --fork');
    return undefined;
  }
  if ([genesis, hardfork, time].some((flag) => flag !== undefined)) throw new Usage('--fork: its block takes the place of --genesis, --genesis-time and --hardfork');
  address(url, '--fork');
  return { url, block: block === undefined ? undefined : forkBlock(block), unproven };
}

/** The text that the program prints at its start. */
async function banner(chain, flags, version, { http, websockets }) {
  const ask = async (method, ...params) => JSON.parse(await chain.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))).result;
  const keys = keysOf(chain.keys());
  // The regtest genesis of the reference node has accounts of its own.
  const isReference = flags.genesis === 'regtest';
  const shown = isReference ? keys : keys.slice(0, flags.accounts ?? ACCOUNTS);
  const origin = isReference ? 'keys are keccak-256 of "cow", "cow1" .. "cow9"' : `m/44'/60'/0'/0/n of: ${flags.mnemonic ?? MNEMONIC}`;
  const wei = shown.length > 0 ? BigInt(await ask('eth_getBalance', shown[0][0], 'latest')) : 0n;
  const { number, hash } = await ask('eth_getBlockByNumber', flags.fork === undefined ? '0x0' : 'latest', false);
  return [
    `Rootlight ${version}: a Rootstock development chain in Node.js`, '',
    'Accounts (keys are public knowledge: never send anything of value to them)',
    ...shown.map(([address, key], index) => `  (${index}) ${address}  ${key}`),
    `  ${rbtc(wei)} RBTC each, ${origin}`,
    ...(keys.length > shown.length ? [`  and ${keys.length - shown.length} accounts of the reference node, see eth_accounts`] : []), '',
    flags.fork === undefined
      ? `Chain id ${Number(await ask('eth_chainId'))} (regtest), genesis ${hash}`
      : `Chain id ${Number(await ask('eth_chainId'))}, fork at block ${Number(number)} ${hash}`,
    ...(flags.unproven === 'trust' ? ['UNPROVEN: its state is what the upstream says (--unproven)'] : []),
    `HTTP       ${http}`,
    `WebSocket  ${websockets.join(', ')}`, '',
  ].join('\n');
}

/** Bytes of an account's address, and of the address with its key. */
const ADDRESS_BYTES = 20;
const ACCOUNT_BYTES = 52;

/** The addresses of accounts with their keys, as pairs in hexadecimal. */
function keysOf(bytes) {
  const hex = (from, to) => `0x${Buffer.from(bytes.subarray(from, to)).toString('hex')}`;
  return Array.from({ length: bytes.length / ACCOUNT_BYTES }, (_, index) => index * ACCOUNT_BYTES).map((at) => [hex(at, at + ADDRESS_BYTES), hex(at + ADDRESS_BYTES, at + ACCOUNT_BYTES)]);
}

/** An amount in RBTC, from wei. */
const rbtc = (wei) => `${wei / 10n ** 18n}.${String(wei % 10n ** 18n).padStart(18, '0')}`.replace(/\.?0+$/, '');

/** Runs the command until Ctrl-C. */
export async function run(flags, _words, version) {
  const life = newLife();
  const options = {
    accounts: flags.accounts,
    balance: flags.balance,
    mnemonic: mnemonicOf(flags.mnemonic),
    blockTime: flags['block-time'],
    hardfork: flags.hardfork,
    genesis: genesisOf(flags.genesis),
    // Tests of contracts compute times from that of the newest block, which is therefore the present by default.
    genesisTime: flags['genesis-time'] ?? (flags.fork === undefined ? Math.floor(Date.now() / 1_000) : undefined),
    fork: forkOf(flags),
    history: flags.history,
    batchLimit: flags['batch-limit'],
    clientVersion: flags['client-version'],
    revertCode: flags['revert-code'],
  };
  const chain = await openChain(life, options).catch((error) => {
    throw wrongFlag(error, COMMANDS.dev);
  });
  const announce = flags.silent ? undefined : async (endpoints) => console.log(await banner(chain, flags, version, endpoints));
  await serve(chain, life, flags, { interval: POLL_INTERVAL, announce });
  life.end(disconnected('the program ends'));
  return 0;
}
