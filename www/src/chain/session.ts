// The page's light client on its source of data: proven answers, unchecked answers of the upstream for comparison, and what the client has
// asked the upstream for.
import type { Answer, Evidence, Provider, SyncProgress } from '../../../pkg/index.js';
import { fromHex, quantity, toBig, toHex } from '../bytes.ts';
import { decodeList } from '../proof/rlp.ts';
import { type Served, servedOf } from './served.ts';
import { type Call, through, toTransport, uncheckedAnswer, without } from './upstream.ts';
import type { Source } from './source.ts';

/** Methods that answer with many proofs at once. The page hides them from the client, which then requests single proofs that the page can show. */
const BUNDLES = ['rootlight_getWitness', 'rootlight_getBlockWitness'];

/** Where a chain starts. */
export interface Start {
  readonly kind: NonNullable<Evidence['start']>;
  readonly number: number;
  /** When the block was made, in seconds since 1970. */
  readonly time: number;
}

/** The evidence for a block of the chain: the result of `rootlight_verification`, and where the chain starts. */
export interface Verification extends Evidence {
  readonly began: Start | null;
}

/** The position of the time among a header's fields. */
const TIME_FIELD = 11;

/** The client's report of an upstream (`rootlight_upstreams`). */
export interface UpstreamReport {
  readonly name: string;
  /** The newest block that it announces, `0x` hexadecimal. */
  readonly announced: string | null;
  /** Why it is not asked at present. */
  readonly resting: string | null;
  readonly latencyMillis: number | null;
  readonly demerits: number;
  /** Number of lies that were caught. */
  readonly lies: number;
  /** Whether it proves state; `null` if it was not asked yet. */
  readonly stateProofs: boolean | null;
  readonly misbehaviour: readonly { readonly method: string; readonly rule: string; readonly lie: boolean }[];
}

/** A block as `eth_getBlockByNumber` returns it, with the hashes of its transactions. */
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

/** The block that an upstream means by a number: the `same` as the proven one, an `other` that is proven too, or one that is `unproven`. */
export type Branch = 'same' | 'other' | 'unproven';

/** A light client on a source. A change of the source makes a new session. */
export class Session {
  readonly source: Source;
  /** Storage cells of which the client requested proofs, by contract: those that the calls which it executed have read. */
  readonly requestedCells = new Map<string, Set<string>>();
  /** Listeners to new heads. */
  private readonly listeners = new Set<(head: number) => void>();
  private provider: Provider | undefined;
  /** Aborted when the session is closed. */
  private readonly ended = new AbortController();
  /** Answers of the upstream that differ from proven ones, as texts. */
  private readonly differences = new Set<string>();
  /** Listeners to other changes. */
  private readonly changes = new Set<() => void>();
  /** The number of the newest proven block. */
  head = 0;
  /** The number of the block at which the chain starts, if that block is trusted; `undefined` also before {@link verification} was called. */
  trusted: number | undefined;
  /** Whether no upstream proves state; false also before an upstream was asked. */
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

  /** Notes the storage cells of a request for a proof. */
  private note({ method, params }: Call): void {
    if (method !== 'eth_getProof' || !Array.isArray(params[1])) return;
    const contract = String(params[0]).toLowerCase();
    const cells = this.requestedCells.get(contract) ?? new Set();
    for (const cell of params[1]) cells.add(String(cell));
    this.requestedCells.set(contract, cells);
  }

  /** Calls the listeners if the head has changed. */
  private async look(): Promise<void> {
    const head = Number(await this.request('eth_blockNumber'));
    if (head === this.head && this.head !== 0) return;
    this.head = head;
    for (const listener of this.listeners) listener(head);
  }

  /** Calls `listener` with each new head. */
  onHead(listener: (head: number) => void): void {
    this.listeners.add(listener);
  }

  /** Calls `listener` for other changes: a lie was caught, or the upstream turned out to prove no state. */
  onChange(listener: () => void): void {
    this.changes.add(listener);
  }

  /** Records a lie: an answer of the upstream that differs from a proven answer. The same text counts once. */
  recordLie(difference: string): void {
    this.differences.add(difference);
    for (const listener of this.changes) listener();
  }

  /** The client's reports of its upstreams. */
  upstreams(): Promise<UpstreamReport[]> {
    return this.request('rootlight_upstreams') as Promise<UpstreamReport[]>;
  }

  /** The upstreams of the server, if it is a light client itself. */
  async served(): Promise<readonly Served[]> {
    if (this.source.kind === 'tab') return [];
    return servedOf(await this.uncheckedAnswer('rootlight_upstreams').catch(() => undefined));
  }

  /** The number of lies that were caught: in proofs, and by comparison with proven answers. */
  async lies(): Promise<number> {
    const reports = await this.upstreams().catch(() => []);
    return reports.reduce((sum, { lies }) => sum + lies, this.differences.size);
  }

  /**
   * Whether the upstream means a proven block by its number, or another one. Another hash excuses an answer that differs only if a block with
   * that hash is proven at that height, because anybody can make up a hash. An upstream that states no hash means the proven block.
   */
  async branchAt({ number, hash }: Block): Promise<Branch> {
    const claimed = (await this.uncheckedAnswer('eth_getBlockByNumber', number, false).catch(() => null)) as Partial<Block> | null;
    if (typeof claimed?.hash !== 'string' || claimed.hash === hash || !/^0x[0-9a-f]{64}$/i.test(claimed.hash)) return 'same';
    // A made-up block is caught as a lie while it is requested.
    const before = await this.lies();
    try {
      const other = (await this.request('eth_getBlockByHash', claimed.hash, false)) as Block | null;
      return other && other.hash !== hash && other.number === number ? 'other' : 'same';
    } catch {
      return (await this.lies()) > before ? 'same' : 'unproven';
    }
  }

  /** Whether the upstream mines on request, which only development chains do. */
  makesBlocks(): Promise<boolean> {
    return this.uncheckedAnswer('anvil_getAutomine').then((answer) => typeof answer === 'boolean', () => false);
  }

  /** The result of a proven answer. */
  async request(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return (await this.answer(method, ...params)).result;
  }

  /** A proven answer and its level. */
  answer(method: string, ...params: readonly unknown[]): Promise<Answer> {
    if (!this.provider) return Promise.reject(new Error('the light client has not started yet'));
    return this.provider.requestWithLevel({ method, params });
  }

  /** The upstream's answer, unchecked. */
  uncheckedAnswer(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return uncheckedAnswer(this.source.exchange, method, ...params);
  }

  /** The proven block of a number; null if there is none. */
  block(number: string): Promise<Block | null> {
    return this.request('eth_getBlockByNumber', number, false) as Promise<Block | null>;
  }

  /** The evidence for a block. A number or tag names a block of the chain, a hash also one off the chain. */
  async verification(block: string | { readonly blockHash: string }): Promise<Verification | null> {
    const evidence = (await this.request('rootlight_verification', block)) as Evidence | null;
    return evidence && { ...evidence, began: await this.began(evidence.start) };
  }

  /** When a block was made, in seconds since 1970, and its Bitcoin header. The client has recent headers in memory. */
  async header(number: number): Promise<{ readonly time: number; readonly bitcoin: string } | undefined> {
    const raw = await this.request('rsk_getRawBlockHeaderByNumber', quantity(number)).catch(() => undefined);
    if (typeof raw !== 'string') return undefined;
    const fields = decodeList(fromHex(raw));
    return { time: Number(toBig(fields[TIME_FIELD] ?? new Uint8Array())), bitcoin: toHex(fields.at(-1) ?? new Uint8Array()) };
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
