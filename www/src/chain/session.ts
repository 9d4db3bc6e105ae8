// A light client on a source, and what it asked its upstream.
import type { Answer, Evidence, Provider, SyncProgress } from '../../../pkg/index.js';
import { fromHex, quantity, toBig, toHex } from '../bytes.ts';
import { decodeList } from '../proof/rlp.ts';
import { type Served, servedOf } from './served.ts';
import { claim, type Call, through, toTransport, without } from './upstream.ts';
import type { Source } from './source.ts';

/** Methods that answer with many proofs at once. The page leaves them out, so that it can show each proof. */
const BUNDLES = ['rootlight_getWitness', 'rootlight_getBlockWitness'];

/** Where a chain starts. */
export interface Start {
  readonly kind: NonNullable<Evidence['start']>;
  readonly number: number;
  /** When the block was made, in seconds since 1970. */
  readonly time: number;
}

/** The basis of a block of the chain: `rootlight_verification`, and where the chain starts. */
export interface Verification extends Evidence {
  readonly began: Start | null;
}

/** The position of the time among a header's fields. */
const TIME = 11;

export interface UpstreamReport {
  readonly name: string;
  readonly announced: string | null;
  readonly resting: string | null;
  readonly latencyMillis: number | null;
  readonly demerits: number;
  readonly lies: number;
  readonly stateProofs: boolean | null;
  readonly misbehaviour: readonly { readonly method: string; readonly rule: string; readonly lie: boolean }[];
}

export interface Block {
  readonly number: string;
  readonly hash: string;
  readonly parentHash: string;
  readonly timestamp: string;
  readonly miner: string;
  readonly difficulty: string;
  readonly gasUsed: string;
  readonly transactions: readonly string[];
  readonly uncles: readonly string[];
  readonly stateRoot: string;
  readonly receiptsRoot: string;
  readonly transactionsRoot: string;
  readonly gasLimit: string;
  readonly bitcoinMergedMiningHeader?: string;
  readonly bitcoinMergedMiningCoinbaseTransaction: string;
  readonly bitcoinMergedMiningMerkleProof: string;
  readonly hashForMergedMining: string;
}

/** Whether an upstream means the proven block by a number, another one that is proven, too, or one that is not proven. */
export type Branch = 'same' | 'other' | 'unproven';

export class Session {
  readonly source: Source;
  /** Storage cells that the client had to see, by contract: what its execution of calls read. */
  readonly cells = new Map<string, Set<string>>();
  private readonly listeners = new Set<(head: number) => void>();
  private provider: Provider | undefined;
  private readonly ended = new AbortController();
  private readonly differences = new Set<string>();
  private readonly changes = new Set<() => void>();
  head = 0;
  /** The number of the block that the chain starts from if that block is trusted, as far as it was asked for. */
  trusted: number | undefined;
  /** Whether no upstream proves state; false also while none has been asked. */
  lacksState = false;

  constructor(source: Source) {
    this.source = source;
  }

  /** Follows the chain up to its head. */
  async start(onProgress: (progress: SyncProgress) => void): Promise<void> {
    const seen = through(without(this.source.exchange, BUNDLES), (call, reply) => {
      this.note(call);
      return reply;
    });
    this.provider = await this.source.start([toTransport(seen)], { onProgress, signal: this.ended.signal });
    this.provider.on('message', (message) => {
      if (message.type === 'rootlight_noStateProofs') this.lacksState = true;
      for (const listener of this.changes) listener();
      void this.look();
    });
    await this.look();
    await this.request('eth_subscribe', 'newHeads');
  }

  private note({ method, params }: Call): void {
    if (method !== 'eth_getProof' || !Array.isArray(params[1])) return;
    const contract = String(params[0]).toLowerCase();
    const cells = this.cells.get(contract) ?? new Set();
    for (const cell of params[1]) cells.add(String(cell));
    this.cells.set(contract, cells);
  }

  /** Tells listeners if the head has changed. */
  private async look(): Promise<void> {
    const head = Number(await this.request('eth_blockNumber'));
    if (head === this.head && this.head !== 0) return;
    this.head = head;
    for (const listener of this.listeners) listener(head);
  }

  onHead(listener: (head: number) => void): void {
    this.listeners.add(listener);
  }

  /** Listens to what is not a new block: a lie that was caught, or that the upstream proves no state. */
  onChange(listener: () => void): void {
    this.changes.add(listener);
  }

  /** Notes that the upstream said something that differs from a proven answer. */
  caught(difference: string): void {
    this.differences.add(difference);
    for (const listener of this.changes) listener();
  }

  upstreams(): Promise<UpstreamReport[]> {
    return this.request('rootlight_upstreams') as Promise<UpstreamReport[]>;
  }

  /** The upstreams of the server, if it is a light client itself. */
  async served(): Promise<readonly Served[]> {
    if (this.source.kind === 'tab') return [];
    return servedOf(await this.claim('rootlight_upstreams').catch(() => undefined));
  }

  /** How many lies were caught: those in proofs, and those beside proven answers. */
  async lies(): Promise<number> {
    const reports = await this.upstreams().catch(() => []);
    return reports.reduce((sum, { lies }) => sum + lies, this.differences.size);
  }

  /**
   * The block that the upstream means by the number of a proven one. Another hash excuses the upstream only if a block with that hash is
   * proven at that height, because anybody can name a hash. An upstream that names none is held to what it says.
   */
  async branchAt({ number, hash }: Block): Promise<Branch> {
    const claimed = (await this.claim('eth_getBlockByNumber', number, false).catch(() => null)) as Partial<Block> | null;
    if (typeof claimed?.hash !== 'string' || claimed.hash === hash || !/^0x[0-9a-f]{64}$/i.test(claimed.hash)) return 'same';
    const before = await this.lies();
    try {
      const other = (await this.request('eth_getBlockByHash', claimed.hash, false)) as Block | null;
      return other && other.hash !== hash && other.number === number ? 'other' : 'same';
    } catch {
      return (await this.lies()) > before ? 'same' : 'unproven';
    }
  }

  /** Whether the upstream mines on request. Light clients and nodes of public networks do not know the methods of development chains. */
  makesBlocks(): Promise<boolean> {
    return this.claim('anvil_getAutomine').then((answer) => typeof answer === 'boolean', () => false);
  }

  /** A proven answer. */
  async request(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return (await this.answer(method, ...params)).result;
  }

  /** A proven answer and its level. */
  answer(method: string, ...params: readonly unknown[]): Promise<Answer> {
    if (!this.provider) return Promise.reject(new Error('the light client has not started yet'));
    return this.provider.requestWithLevel({ method, params });
  }

  /** The upstream's answer, unchecked. */
  claim(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return claim(this.source.exchange, method, ...params);
  }

  block(number: string): Promise<Block | null> {
    return this.request('eth_getBlockByNumber', number, false) as Promise<Block | null>;
  }

  /** What a block rests on. A number names the block of the chain, a hash also one off the chain. */
  async verification(block: string | { readonly blockHash: string }): Promise<Verification | null> {
    const evidence = (await this.request('rootlight_verification', block)) as Evidence | null;
    return evidence && { ...evidence, began: await this.began(evidence.start) };
  }

  /** When a block was made, in seconds since 1970, and its Bitcoin header. The client has recent headers, so that nothing is asked for. */
  async header(number: number): Promise<{ readonly time: number; readonly bitcoin: string } | undefined> {
    const raw = await this.request('rsk_getRawBlockHeaderByNumber', quantity(number)).catch(() => undefined);
    if (typeof raw !== 'string') return undefined;
    const fields = decodeList(fromHex(raw));
    return { time: Number(toBig(fields[TIME] ?? new Uint8Array())), bitcoin: toHex(fields.at(-1) ?? new Uint8Array()) };
  }

  /** Where the chain starts. */
  private async began(kind: Evidence['start']): Promise<Start | null> {
    const checkpoint = (await this.request('rootlight_checkpoint')) as { number: string } | null;
    if (!kind || !checkpoint) return null;
    const number = Number(checkpoint.number);
    this.trusted = /^(checkpoint|upstream)$/.test(kind) ? number : undefined;
    const header = await this.header(number);
    return header ? { kind, number, time: header.time } : null;
  }

  /** Whether the page has turned to another source. */
  get isClosed(): boolean {
    return this.ended.signal.aborted;
  }

  close(): void {
    this.ended.abort(new Error('the page uses another source'));
    this.listeners.clear();
    this.changes.clear();
    this.provider?.close();
    this.source.chain?.close();
  }
}
