// The chain of the soak: the only place from which blocks are mined and reverted, so that all events are known.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { eventName } from './subscriber.mjs';

const { ContractFactory, HDNodeWallet, Interface, getCreateAddress } = createRequire(
  new URL('../../../tests/clients/', import.meta.url),
)('ethers');
const compiled = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));
const MNEMONIC = 'test test test test test test test test test test test junk';

/** Accounts that send transactions. */
const SENDERS = 4;
/** Most blocks above the first ones; then the chain goes back to these, so that its own size does not grow. */
const LENGTH = 100;
/** Milliseconds between two blocks. */
const PACE = 100;

export class Chain {
  /** The names of the events that every subscriber must be told of. */
  #expected = [];
  /** The names of the events that only subscribers with the sender's key must be told of. */
  #sent = [];
  blocks = 0;
  transactions = 0;
  reorganisations = 0;
  sideBlocks = 0;
  /** The key that sends all transactions. */
  key;
  abi = new Interface(compiled.abi);
  senders = Array.from({ length: SENDERS }, (_, n) => HDNodeWallet.fromPhrase(MNEMONIC, '', `m/44'/60'/0'/0/${n}`));
  token = getCreateAddress({ from: this.senders[0].address, nonce: 0 });
  #nonces = this.senders.map(() => 0);
  /** The reported logs of each block above the first ones, oldest first. */
  #above = [];
  #send;

  constructor(server, statistics) {
    this.server = server;
    this.key = server.key();
    this.statistics = statistics;
    this.#send = server.client();
  }

  /** The names of the events that a subscriber with this key must be told of. */
  expected(key) {
    return key === this.key ? [...this.#expected, ...this.#sent] : this.#expected;
  }

  /** Makes a call that must succeed; returns its result. */
  call(method, ...params) {
    return this.#callWith(this.server.key(), method, params);
  }

  async #callWith(key, method, params) {
    const started = performance.now();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const { status, text } = await this.#send(key, body);
    const answer = JSON.parse(text);
    this.statistics.answer(status, answer, performance.now() - started, method);
    if (answer.error) throw new Error(`${method}: ${text}`);
    return answer.result;
  }

  /** Deploys the token, and gives every sender some of it. */
  async prepare() {
    const factory = new ContractFactory(compiled.abi, compiled.bytecode);
    const { data } = await factory.getDeployTransaction('Soak', 10n ** 24n);
    await this.#transaction(0, { data, gasLimit: 2_000_000 });
    await this.call('evm_mine');
    for (const { address } of this.senders) await this.#transfer(0, address, 10n ** 20n);
    await this.call('evm_mine');
    this.#base = await this.#save();
  }

  #base;

  async #transaction(index, fields) {
    const nonce = this.#nonces[index]++;
    const rest = { chainId: 33, type: 0, gasPrice: 1_000_000_000, value: 0, nonce };
    const signed = await this.senders[index].signTransaction({ ...rest, ...fields });
    const hash = await this.#callWith(this.key, 'eth_sendRawTransaction', [signed]);
    this.transactions++;
    return hash;
  }

  #transfer(index, to, value) {
    const data = this.abi.encodeFunctionData('transfer', [to, value]);
    return this.#transaction(index, { to: this.token, data, gasLimit: 100_000 });
  }

  async #save() {
    return { id: await this.call('evm_snapshot'), nonces: [...this.#nonces], above: this.#above.length };
  }

  /** Goes back: the logs of the removed blocks are reported once more. */
  async #revert({ id, nonces, above }) {
    if (!(await this.call('evm_revert', id))) throw new Error('the snapshot is unknown');
    const removed = this.#above.splice(above).flat();
    this.#expected.push(...removed.map((log) => eventName('logs', { ...log, removed: true })));
    this.#nonces = [...nonces];
    this.reorganisations++;
  }

  /** Notes the events of a new head. */
  async #mined(number) {
    const block = await this.call('eth_getBlockByNumber', number ?? 'latest', false);
    const logs = await this.call('eth_getLogs', { blockHash: block.hash, address: this.token });
    this.#above.push(logs);
    this.#expected.push(eventName('newHeads', block), ...logs.map((log) => eventName('logs', log)));
    this.blocks++;
    return block;
  }

  /** Sends transactions and mines them. */
  async #block(count) {
    const sent = [];
    for (let i = 0; i < count; i++) {
      const to = this.senders[(i + 1) % SENDERS].address;
      sent.push(await this.#transfer(i % SENDERS, to, BigInt(this.transactions)));
      this.#sent.push(eventName('newPendingTransactions', sent.at(-1)));
    }
    await this.call('evm_mine');
    const { transactions } = await this.#mined();
    if (!sent.every((hash) => transactions.includes(hash))) throw new Error('a transaction was not mined');
  }

  /** Mines a block as a merge miner does, and then its sibling, which stays beside the chain. */
  async #siblings() {
    const work = await this.call('mnr_getWork');
    const [first, second] = [1, 2].map((time) => `0x${bitcoinBlock(work, time).toString('hex')}`);
    await this.call('mnr_submitBitcoinBlock', first);
    const { hash } = await this.#mined();
    await this.call('mnr_submitBitcoinBlock', second);
    const head = await this.call('eth_getBlockByNumber', 'latest', false);
    if (head.hash !== hash) throw new Error('the sibling of the head became the head');
    this.sideBlocks++;
  }

  /** Mines, reorganises and goes back to the first blocks again and again. */
  async run(running) {
    for (let round = 1; running(); round++) {
      await this.#block(round % 4);
      if (round % 5 === 0) {
        // Another branch replaces one to four blocks.
        const before = await this.#save();
        const blocks = 1 + (round % 4);
        for (let i = 0; i < blocks; i++) await this.#block(i);
        await this.#revert(before);
        for (let i = 0; i <= blocks; i++) await this.#block(1);
      }
      if (round % 7 === 0) await this.#siblings();
      if (this.#above.length > LENGTH) {
        await this.#revert(this.#base);
        await this.#block(1);
      }
      await new Promise((resolve) => setTimeout(resolve, PACE));
    }
  }
}

const hash256 = (bytes) => createHash('sha256').update(createHash('sha256').update(bytes).digest()).digest();

/** A Bitcoin block whose coinbase names the work, and whose hash is at most its target. */
function bitcoinBlock({ blockHashForMergedMining, target }, time) {
  const named = Buffer.concat([Buffer.from('RSKBLOCK:'), Buffer.from(blockHashForMergedMining.slice(2), 'hex')]);
  const script = Buffer.concat([Buffer.from([0x6a, named.length]), named]);
  const number = (value, bytes) => {
    const buffer = Buffer.alloc(bytes);
    buffer.writeUIntLE(value, 0, Math.min(bytes, 6));
    return buffer;
  };
  const input = Buffer.concat([Buffer.alloc(32), number(0xffffffff, 4), Buffer.from([4]), number(time, 4), number(0xffffffff, 4)]);
  const output = Buffer.concat([number(0, 8), Buffer.from([script.length]), script]);
  const coinbase = Buffer.concat([number(1, 4), Buffer.from([1]), input, Buffer.from([1]), output, number(0, 4)]);
  for (let nonce = 0; ; nonce++) {
    const start = [number(1, 4), Buffer.alloc(32), hash256(coinbase), number(time, 4), number(0x207fffff, 4)];
    const header = Buffer.concat([...start, number(nonce, 4)]);
    const value = BigInt(`0x${hash256(header).reverse().toString('hex')}`);
    if (value <= BigInt(target)) return Buffer.concat([header, Buffer.from([1]), coinbase]);
  }
}
