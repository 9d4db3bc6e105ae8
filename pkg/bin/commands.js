// The commands of the program, and their flags: `value` is the name of a flag's value in help texts, `text` its help, `kind` how the value is
// read, and `many` says that the flag may be repeated. Names and meanings are those of the native program, as far as the modules have them.
import { NETWORKS } from '../message.js';

/** Flags of every command that serves. */
const SERVER = {
  'http-port': { value: 'N', kind: 'number', text: 'Port for HTTP and WebSocket; 0 picks a free one [default: 4444]' },
  'ws-port': { value: 'N', kind: 'number', text: 'Another port for WebSocket [default: 4445; none if --http-port is given]' },
  host: { value: 'H', text: 'Address to listen on [default: 127.0.0.1]' },
  'allow-host': { value: 'LIST', text: 'Host names, separated by commas (* for all), that requests may be addressed to besides localhost and IP addresses' },
  cors: {
    value: 'LIST',
    text: 'Origins of web pages, separated by commas (* for all), that may call every method [default: pages of other origins may call methods that use no keys and do not change the chain by hand]',
  },
  'batch-limit': { value: 'N', kind: 'number', text: 'Most calls of one batch [default: 1000]' },
  silent: { text: 'Print nothing but results and errors' },
};

/** The commands by name: help text, the file that runs the command, flags, and `words`, the other arguments as help shows them. */
export const COMMANDS = {
  dev: {
    text: 'Run a development chain (the default command)',
    load: () => import('./dev.js'),
    flags: {
      'block-time': { value: 'S|0|manual', text: 'When to mine: 0 mines a block for each transaction, S one block every S seconds, manual only on request [default: 0]' },
      accounts: { value: 'N', kind: 'number', text: 'Number of funded accounts [default: 10]' },
      balance: { value: 'RBTC', text: 'Balance of each account, in RBTC [default: 10000]' },
      mnemonic: { value: 'WORDS', text: 'Mnemonic that the account keys are derived from [default: the one of anvil and hardhat]' },
      hardfork: { value: 'NAME', text: 'Apply only the rules up to this network upgrade, wasabi100 or later [default: all rules]' },
      genesis: { value: 'regtest|FILE', text: "Another genesis block: regtest is exactly the reference node's, a file gives the allocation" },
      'genesis-time': { value: 'SECONDS', kind: 'number', text: 'Timestamp of block 0, for chains that shall be the same each time [default: the present]' },
      fork: { value: 'URL', text: 'Begin on a block of the network of this node, whose state and blocks are fetched as they are read, and verified' },
      'fork-block': { value: 'N|N:HASH', text: 'The block to begin on: a number, or a number with its hash, which is trusted [default: the newest verified block]' },
      unproven: { value: 'refuse|trust', text: 'With --fork: trust takes state that the node does not prove [default: refuse]' },
      'client-version': { value: 'TEXT', text: 'What web3_clientVersion answers; the network helpers of hardhat work only if it begins with "anvil"' },
      'revert-code': { value: '3|-32015', text: "Code of the error of a call that reverts; viem and web3.py decode custom errors only from geth's, 3 [default: -32015]" },
      history: { value: 'N', kind: 'number', text: 'Number of blocks below the head whose states are kept [default: 10000]' },
      ...SERVER,
    },
  },
  light: {
    text: 'Follow the chain of untrusted upstreams, and serve proven answers',
    load: () => import('./light.js'),
    flags: {
      network: { value: 'NAME', text: `${NETWORKS} [default: mainnet]` },
      upstream: { value: 'URL', many: true, text: 'Upstream: an http(s) or ws(s) URL; repeat the flag for several upstreams, which check and replace each other' },
      checkpoint: {
        value: 'window|work|built-in|NUMBER:HASH[:TD]',
        text: 'Where to start [default: window; on regtest the block 0 that the upstreams show; built-in where work proves nothing]',
      },
      'min-depth': { value: 'N', kind: 'number', text: 'Refuse answers about blocks that have fewer than this many blocks on top [default: 0]' },
      'max-age': { value: 'S', kind: 'number', text: 'Refuse answers while the newest verified block is older than this many seconds; 0 accepts any age [default: 3600, on regtest 0]' },
      'min-work': { value: 'PERCENT', kind: 'number', text: 'Least share of the promised work that every 2, 6 and 24 hours of the chain must show [default: 50]' },
      'data-dir': { value: 'DIR', text: 'Store verified headers in this folder, and continue from them' },
      unproven: { value: 'refuse|quorum:N|trust', text: 'Answers that no upstream can prove: refuse them, accept what N upstreams agree on, or trust the best one [default: refuse]' },
      ...SERVER,
    },
  },
  verify: {
    text: 'Check headers, receipts or account proofs offline; report what they prove or which check fails',
    words: '[header|receipt|account] FILE',
    load: () => import('./verify.js'),
    flags: {
      network: { value: 'NAME', text: `${NETWORKS} [default: mainnet]` },
      json: { text: 'Print the result as JSON' },
    },
  },
};
