/** The argument of `request` (EIP-1193). */
export interface RequestArguments {
  readonly method: string;
  /**
   * A list for all methods of nodes; some methods of wallets, such as `wallet_watchAsset`, take an object. The type is `unknown` because the
   * library viem accepts only providers with this type.
   */
  readonly params?: unknown;
}

/**
 * The error of a failed request. `code` is a JSON-RPC error code, or one of:
 * - `3`: the call reverted; `data` is the revert data;
 * - `-32002`: no upstream gave a proof that verifies;
 * - `-32005`: the upstreams' responses would take too much memory;
 * - `4001`: the user refused (from the wallet that the option `signer` names);
 * - `4100`: the method needs an account, and the provider was created without `signer`;
 * - `4200`: neither the provider nor its wallet has the method;
 * - `4900`: the provider was closed, or its WebAssembly module or its worker has ended;
 * - `4901`: the wallet, or the transaction, is on another chain than the provider;
 * - `4902`: a request to switch to a chain that the provider does not serve, or to add one.
 */
export interface ProviderRpcError extends Error {
  readonly code: number;
  readonly data?: unknown;
}

/**
 * A result, and its level if it is less than proven: `unproven-absence` means that all upstreams say that there is no such
 * object, which cannot be proven; `unproven` is an answer that the option `unproven` allows; `wallet` is an answer of the user's wallet,
 * the option `signer`. `start` is set if no block is trusted (by default on mainnet: see the option `checkpoint`) and the result depends on the
 * chain; `rootlight_verification` and `rootlight_syncStatus` then report in `attackCost` the least work of making up that chain. `bitcoin` is
 * set if the client follows Bitcoin's chain, which it does where an upstream has that chain, and if Bitcoin's chain does not confirm the result.
 */
export interface Answer {
  readonly result: unknown;
  readonly level?: 'unproven-absence' | 'unproven' | 'wallet';
  readonly start?: UntrustedStart;
  readonly bitcoin?: BitcoinMark;
}

/** A start that trusts no block: see the option `checkpoint`. */
export type UntrustedStart = 'window' | 'work';

/**
 * What Bitcoin's chain says of a result that it does not confirm (docs/trust/bitcoin.md): a rule does not hold (`weak`), more of
 * Bitcoin's newest blocks name another branch than this chain (`contested`), or no source shows a recent block (`unavailable`).
 */
export type BitcoinMark = 'weak' | 'contested' | 'unavailable';

/** An event of a subscription (EIP-1193, EIP-758). */
export interface SubscriptionMessage {
  readonly type: 'eth_subscription';
  readonly data: { readonly subscription: string } & Answer;
}

/**
 * Blocks for which a subscription may have emitted no events. A subscription that is not polled for an hour, as on a
 * computer that sleeps, expires; the provider renews it under the same id. Request these blocks with `eth_getLogs` or
 * `eth_getBlockByNumber`. Logs that a reorganisation removed meanwhile are not reported.
 */
export interface GapMessage {
  readonly type: 'rootlight_gap';
  /** The first and the last block of the gap, `0x` hexadecimal. */
  readonly data: { readonly subscription: string; readonly fromBlock: string; readonly toBlock: string };
}

/**
 * The user's wallet `signer` has moved to another chain, or back. The provider stays on its own chain, so that this is not
 * `chainChanged`; requests that sign fail with 4901 unless `signs`.
 */
export interface WalletChainMessage {
  readonly type: 'rootlight_walletChain';
  /** `chainId` is the wallet's chain in the wallet's own form; `signs` says whether it is the provider's chain, on which the wallet signs. */
  readonly data: { readonly chainId: string; readonly signs: boolean };
}

/**
 * None of the upstreams proves state: all are stock nodes, as the public ones of Rootstock. Balances, nonces, code, storage and calls are
 * refused with -32002 and the same text; blocks, transactions, receipts and logs are proven. The message is emitted after `createProvider` or
 * `setUpstreams` has resolved and the code that awaits it has run; never with the option `unproven`.
 */
export interface NoStateProofsMessage {
  readonly type: 'rootlight_noStateProofs';
  /** `upstreams` are their names; `message` says what can be done. */
  readonly data: { readonly upstreams: readonly string[]; readonly message: string };
}

/** The values of the event `message`. */
export type ProviderMessage = SubscriptionMessage | GapMessage | WalletChainMessage | NoStateProofsMessage;

/** An event of EIP-1193: the provider can answer. */
export interface ConnectInfo {
  /** The chain id, `0x` hexadecimal. */
  readonly chainId: string;
}

/** The evidence for an answer about a block: the result of `rootlight_verification` (docs/methods.md). Numbers are `0x` hexadecimal. */
export interface Evidence {
  readonly blockNumber: string;
  readonly blockHash: string;
  /** `verified`, or `verified (testnet work)` on networks where work is nearly free, or `local` on a development chain. */
  readonly level: string;
  /**
   * Why the header is accepted: `mined` (its proof of work), `hash link` (a later header names its hash), `built here` (the development chain made
   * it), or for the block of the start the value of `start`.
   */
  readonly origin: string;
  /** Whether the block is on the heaviest proven chain. */
  readonly canonical: boolean;
  /** Number of blocks on top; 0 off the heaviest chain. */
  readonly depth: string;
  /** Proven work of the blocks on top, as difficulty. */
  readonly workOnTop: string | null;
  /** Proven work of the headers from the start up to the block, as difficulty. */
  readonly headerWork: string | null;
  /** The block that is trusted: a checkpoint, or one that an upstream has shown; or how the client starts without one. Null on a local chain. */
  readonly start: 'checkpoint' | 'upstream' | UntrustedStart | null;
  /** If no block is trusted: the least work of making up this block and those on top. */
  readonly attackCost: string | null;
  /** Whether the header's fork-detection data is verified. */
  readonly forkDetectionComplete: boolean;
  /** Whether the block's uncles are verified. */
  readonly unclesProven: boolean;
  /** What Bitcoin's chain shows above the block; null if no upstream has Bitcoin's chain, or while that chain is not judged yet. */
  readonly bitcoin: BitcoinEvidence | null;
}

/** What Bitcoin's chain shows above a block (docs/trust/bitcoin.md). */
export interface BitcoinEvidence {
  /** Whether Bitcoin's chain confirms the whole chain: `held` if it does. `reason` says why it does not. */
  readonly verdict: 'held' | BitcoinMark;
  readonly reason: string | null;
  /** Number of Bitcoin blocks that commit to this block or to one above it. */
  readonly blocksAbove: number;
  /** Height of the newest of them. */
  readonly newestHeight: number | null;
  /** Seconds since the newest of them was mined, by its own time. */
  readonly newestAge: number | null;
  /** Which chain the newest 72 Bitcoin blocks name. */
  readonly tags: BitcoinTags;
}

/** Numbers of Bitcoin blocks by what their coinbases name. */
export interface BitcoinTags {
  /** This chain. */
  readonly own: number;
  /** Blocks of this chain that no upstream shows. */
  readonly kin: number;
  /** Another branch. */
  readonly foreign: number;
  /** A block far above this chain's head. */
  readonly ahead: number;
  /** No Rootstock block. */
  readonly none: number;
  /** No source has shown the coinbase. */
  readonly withheld: number;
}

/** A response of an upstream that breaks a rule. */
export interface Misbehaviour {
  /** Name of the upstream: its host, or `upstream N` for a transport of your own. */
  readonly upstream: string;
  /** When, in seconds since 1970. */
  readonly at: number;
  /** The request that the upstream answered: its method, and its parameters as JSON. */
  readonly method: string;
  readonly params: string;
  /** The rule that the response breaks, in words. */
  readonly rule: string;
  /** Whether the response is a lie, and not only useless. */
  readonly lie: boolean;
}

/** The evidence for one answer. The event is emitted after the answer, and only while a listener is registered. */
export interface VerificationEvent {
  readonly method: string;
  /**
   * `verified`: a verified header commits to the answer (with a remark on networks where work is nearly free); `local`: it
   * needs no chain, or the provider answers in place of a wallet; `forwarded`: a transaction that was passed to upstreams; `wallet`,
   * `unproven-absence` and `unproven` as in {@link Answer}; `refused`: the request failed, because no upstream gave a proof that
   * verifies.
   */
  readonly level: string;
  /** Number of blocks on top of the block of a verified answer; null without `evidence`. */
  readonly depth: number | null;
  /**
   * The evidence for a verified answer: about the block that the result names, or the one in the parameters. Null for other answers, and if
   * `latest` has become another block while the request ran.
   */
  readonly evidence: Evidence | null;
  readonly start?: UntrustedStart;
  readonly bitcoin?: BitcoinMark;
  /** The error of a refused request. */
  readonly error?: { readonly code: number; readonly message: string };
  /** Misbehaviour of upstreams that no earlier event has named. */
  readonly caught: readonly Misbehaviour[];
}

/** Events and their values. */
export interface ProviderEvents {
  /** Emitted after the code that awaits the provider has run, and when an upstream answers again after `disconnect` with code 1013. */
  readonly connect: ConnectInfo;
  /**
   * The `code` says whether the provider has ended:
   * - `1013` ("try again later"): no upstream has answered for a while. The client goes on asking them, and `connect` follows.
   *   Meanwhile requests are answered from verified data that is in memory, up to the option `maxAge`; subscriptions stay.
   * - `4900`: after `close`, or when the provider's WebAssembly module or worker has ended, for example because its memory is
   *   full. All pending requests are rejected with the same error; call {@link createProvider} for a new provider. Other
   *   providers are not affected.
   */
  readonly disconnect: ProviderRpcError;
  /** Never emitted: a provider serves one chain. The event is declared because libraries listen to it. See {@link WalletChainMessage}. */
  readonly chainChanged: string;
  /** The accounts that the wallet `signer` allows have changed. Never emitted without `signer`. */
  readonly accountsChanged: readonly string[];
  /** Events of `eth_subscribe`: headers, logs (with `removed` if a reorganisation removed them), hashes; and the other messages of {@link ProviderMessage}. */
  readonly message: ProviderMessage;
  /** The newest verified block has changed. During the first synchronization see `onProgress`. */
  readonly progress: SyncProgress;
  /** The evidence for an answer, so that a wallet can show it, and name an upstream that lies. */
  readonly verification: VerificationEvent;
}

/** Options of one request. */
export interface RequestOptions {
  /** Makes the request reject with the signal's reason as soon as it aborts. Work that has begun is not interrupted. */
  readonly signal?: AbortSignal | undefined;
}

/** An EIP-1193 provider. The caller may name the type of a result, which is not checked. */
export interface Eip1193Provider {
  request<Result = unknown>(call: RequestArguments, options?: RequestOptions): Promise<Result>;
  on<Event extends keyof ProviderEvents>(event: Event, listener: (value: ProviderEvents[Event]) => void): this;
  on(event: string, listener: (value: never) => void): this;
  removeListener(event: string, listener: (value: never) => void): this;
}

/** What light clients and development chains have in common. */
export interface ChainProvider extends Eip1193Provider {
  /** Answers a JSON-RPC call; rejects with a {@link ProviderRpcError}. */
  request<Result = unknown>(call: RequestArguments, options?: RequestOptions): Promise<Result>;
  /** As `request`, but also returns the level of the result: `request` cannot show that a `null` is unproven. */
  requestWithLevel(call: RequestArguments, options?: RequestOptions): Promise<Answer>;
  /**
   * Stops, rejects pending requests and frees the module's memory. Later requests fail with 4900. A request that the user's wallet has
   * taken before is still answered by it.
   */
  close(): void;
}

/** A light client that answers from verified data. */
export interface Provider extends ChainProvider {
  /**
   * Replaces the upstreams. Resolves when a client of the new ones has verified the chain up to their head; until then the
   * former ones answer, and they stay if this fails. Subscriptions continue under their ids; filters end. Stored headers are
   * used again; without storage the chain is verified from its start on.
   */
  setUpstreams(upstreams: Upstreams, options?: RequestOptions): Promise<void>;
}

/** The description of an announced provider (EIP-6963). */
export interface ProviderInfo {
  /** A UUID of version 4 for this visit of the page; a random one by default. */
  readonly uuid?: string;
  /** The name that users see. */
  readonly name: string;
  /** A `data:` URI of a square image. */
  readonly icon: string;
  /** A domain name of yours, reversed, as in `org.example.wallet`. */
  readonly rdns: string;
}

/**
 * Announces a provider to the other programs of its page (EIP-6963), at once and whenever one asks, so that wallet dialogues
 * list it. Returns a function that stops this. Throws a `TypeError` if the description is wrong, or outside pages.
 */
export function announce(provider: Signer, info: ProviderInfo): () => void;

/**
 * Sends one JSON-RPC body (a request or a batch) to a node and returns the bytes of the response. An error with a
 * `retryAfter` (seconds, or null) means that the node asks for a pause. An exchange of more than 60 seconds fails.
 */
export interface Transport {
  (body: string): Promise<Uint8Array>;
  /** Calls `listener` whenever the node announces a block. This is only a hint to check for new blocks. */
  heads?(listener: () => void): void;
}

/** An upstream's address (http, https, ws or wss), a {@link Transport} of your own, or a list of these. */
export type Upstreams = string | URL | Transport | readonly (string | URL | Transport)[];

/** The progress of synchronization. */
export interface SyncProgress {
  /** Number of the block at which this run started. */
  readonly startingBlock: number;
  /** Number of the newest verified block. */
  readonly currentBlock: number;
  /** Number of the newest block that an upstream announces. */
  readonly highestBlock: number;
  readonly headersPerSecond: number;
  /** Seconds left at this rate; absent while it is not known. */
  readonly secondsLeft?: number;
}

/** A block that is trusted without proof; everything after it is verified. */
export interface Checkpoint {
  readonly number: number;
  /** `0x` and 64 hexadecimal digits. */
  readonly hash: string;
  /** Total difficulty up to and including the block, `0x` hexadecimal; without it blocks have `totalDifficulty: null`. */
  readonly totalDifficulty?: string;
}

/**
 * Stores values of about 70 kB under short keys: for a window 129 values in all, and one more of up to 180 kB with Bitcoin's headers; otherwise one
 * for every 64 blocks since the checkpoint. Of the clients that get the same object, one writes at a time. If several processes share the
 * underlying storage, let only one of them write.
 */
export interface HeaderStore {
  get(key: string): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  put(key: string, value: Uint8Array): Promise<void> | void;
}

/**
 * An EIP-1193 provider of any library, such as the user's wallet that an extension injects. Each library types methods and events in its own
 * way, so that this type leaves them open.
 */
export interface Signer {
  request(...args: any): Promise<any>;
  on?(...args: any): any;
  removeListener?(...args: any): any;
}

/** Options of {@link createProvider}. */
export interface ProviderOptions {
  /** A network by name. */
  readonly network: 'mainnet' | 'testnet' | 'testnet2' | 'devnet' | 'regtest';
  /** One or several upstreams. Several upstreams check and replace each other. */
  readonly upstreams?: Upstreams;
  /** @deprecated The former name of `upstreams`. */
  readonly upstream?: Upstreams;
  /**
   * Where trust starts:
   * - a block: everything above it is verified before the first answer.
   * - `'window'`, the default on mainnet: no block is trusted. The client starts from the heaviest chain of recent headers that upstreams
   *   prove, says so with every answer (`start`), and stores them, so that a restart asks for what is new. Headers of two days are
   *   verified before the first answer (7 MB). A later window may not be older than what an earlier visit has proven, nor contradict it
   *   with less work; where that visit was deceived, or its clock was ahead, delete the site's data or the storage.
   * - on `regtest` by default the block 0 that the upstreams show, because every development chain has its own: it is trusted, says so
   *   (`start: 'upstream'`), and nothing is stored. Upstreams that show different ones are refused.
   * - `'built-in'`, the default elsewhere and with `minWork: 0`: the newest built-in block (genesis on networks without any), which is
   *   refused once it is more than a year old. On mainnet that is some 440,000 headers (500 MB) before the first answer.
   * - `'work'`: as `'window'`, but nothing is stored.
   *
   * `'window'` and `'work'` are refused on networks where work is nearly free, which are all but `mainnet`.
   */
  readonly checkpoint?: Checkpoint | UntrustedStart | 'built-in';
  /** Seconds between two checks for new blocks; 10 by default, 0.1 at least. */
  readonly pollSeconds?: number;
  /** Most requests in one batch to an upstream; 50 by default. */
  readonly batch?: number;
  /** Most calls in one batch of a caller, from 1 to 10,000; 1,000 by default. */
  readonly batchLimit?: number;
  /** Refuse answers about blocks with fewer blocks on top; 0 by default. */
  readonly minDepth?: number;
  /** Refuse answers if the newest verified block is older than this many seconds; 3600 by default, 0 accepts any age, which is the default where the
   * upstreams show block 0. */
  readonly maxAge?: number;
  /**
   * Least share, in percent, of the work promised by the checkpoint's difficulty that every 2, 6 and 24 hours of the chain
   * must show; 50 by default, 0 requires none and is refused with `checkpoint: 'window'` and `'work'`.
   */
  readonly minWork?: number;
  /**
   * What to answer if no upstream gives a proof: `refuse` is an error, and the default; `quorum:N` accepts an answer that N
   * upstreams under different domains give; `trust` accepts that of the best one. `requestWithLevel` marks such answers.
   */
  readonly unproven?: 'refuse' | `quorum:${number}` | 'trust';
  /** Called with the progress until the head is reached. */
  readonly onProgress?: (progress: SyncProgress) => void;
  /**
   * Where verified headers are stored between two runs: IndexedDB by default if the runtime has it, `null` for nowhere, a
   * directory in Node.js (a path, or a file address as a `URL`), or a store of your own; nowhere with `checkpoint: 'work'`.
   * Stored headers are verified again: those before the first damaged or foreign page are used, the others are replaced. Of
   * several clients with the same storage one writes; another one takes over when that one is closed.
   */
  readonly storage?: string | URL | HeaderStore | null;
  /** @deprecated The former name of `storage`. */
  readonly store?: HeaderStore | null;
  /**
   * The user's wallet, another EIP-1193 provider. The wallet gets account and signing methods: `eth_accounts`,
   * `eth_requestAccounts`, `eth_sign*`, `eth_send*` (not `eth_sendRaw*`), `personal_*`, `wallet_*`. This provider answers all other methods.
   * The wallet signs only while it is on the provider's chain. Without it `eth_accounts` is `[]`, and signing is refused with 4100.
   */
  readonly signer?: Signer;
  /**
   * Where the client runs:
   * - `'shared'`: in a SharedWorker. All tabs of a site that create providers with the same options share one client, which
   *   ends when the last of them goes away.
   * - `'dedicated'`: in a worker of its own; in Node.js in a worker thread.
   * - `false`: on the thread that calls `createProvider`.
   * - a function that returns a worker which runs this package's `rootlight/worker.js` (`rootlight/dev-worker.js` for
   *   `rootlight/dev.js`). The provider ends that worker.
   *
   * By default pages use a SharedWorker; where that cannot be started a worker of their own, and where that cannot be started
   * either the page's thread, which `console.info` says once. Service workers, other workers, background pages of extensions
   * without a document, and Node.js use the thread that calls. So do pages whose options contain objects that cannot be sent
   * to a worker: a {@link HeaderStore} of yours, or a `module` that is not an address. A {@link Transport} of yours is called
   * in the page, and its client runs in a worker that no other tab shares. `signer`, `onProgress`, `onStoreError` and `signal`
   * stay in the page too.
   */
  readonly worker?: 'shared' | 'dedicated' | false | (() => object | Promise<object>);
  /** Called once if headers cannot be read or stored; `console.warn` by default. The client continues without a store. */
  readonly onStoreError?: (error: Error) => void;
  /** Makes `createProvider` reject with the signal's reason. It has no effect once the provider exists. */
  readonly signal?: AbortSignal;
  /**
   * Most milliseconds that `createProvider` may take, verification of all headers included; it rejects with code 4900 then.
   * There is no limit by default.
   */
  readonly timeout?: number;
  /** The WebAssembly module, or where to load it from; by default the file of this package. */
  readonly module?: URL | Request | Response | BufferSource | WebAssembly.Module;
}

/**
 * Verifies the chain up to the upstreams' head, then resolves; rejects if that fails. In Node.js a pending `createProvider`
 * or request keeps the process running; a provider that waits for blocks does not.
 */
export function createProvider(options: ProviderOptions): Promise<Provider>;

/** @deprecated The former name of {@link createProvider}. */
export { createProvider as connect };

/** @deprecated The former name of {@link ProviderOptions}. */
export type ConnectOptions = ProviderOptions;

/**
 * Loads and compiles the WebAssembly module ahead of time, for clients on this thread; a worker loads its own. Each client has
 * its own instance of it.
 */
export function load(module?: ProviderOptions['module']): Promise<WebAssembly.Module>;

/** Options of {@link httpTransport}. */
export interface HttpOptions {
  /** Headers of every request, for instance with a key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds one exchange may take; 20,000 by default. */
  readonly timeout?: number;
  /** Most bytes read from one response; 32 MiB by default. */
  readonly maxBytes?: number;
  /** The function that sends requests; the runtime's own by default. */
  readonly fetch?: typeof fetch;
}

/**
 * Makes the transport of an http or https address, with options. A user and a password in the address are sent as an
 * `authorization` header.
 */
export function httpTransport(url: string | URL, options?: HttpOptions): Transport;

/** Options of {@link webSocketTransport}. */
export interface WebSocketOptions {
  /** Milliseconds one exchange may take; 20,000 by default. */
  readonly timeout?: number;
  /** Most characters read from one response; 32 Mi by default. */
  readonly maxLength?: number;
  /** The `WebSocket` class, for runtimes that have none. */
  readonly WebSocket?: unknown;
}

/**
 * Makes the transport of a ws or wss address, with options, for one client. The client then checks for new blocks when the
 * node announces them.
 */
export function webSocketTransport(url: string | URL, options?: WebSocketOptions): Transport & { close(): void };
