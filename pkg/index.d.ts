/** What `request` takes (EIP-1193). */
export interface RequestArguments {
  readonly method: string;
  readonly params?: readonly unknown[];
}

/**
 * How a request fails: JSON-RPC codes, `3` for a revert (`data` holds what was returned), `-32005` where answers would take
 * too much memory, `4900` when the provider was closed or its module has ended.
 */
export interface ProviderRpcError extends Error {
  readonly code: number;
  readonly data?: unknown;
}

/**
 * A result, and its level where it is less than proven: `unproven-absence` rests on "there is none" of all upstreams, of
 * which no proof can exist, `unproven` on what the option `unproven` allows. `start` is there where no block is trusted
 * (`checkpoint: 'work'`) and the result rests on the chain; `rootlight_verification` and `rootlight_syncStatus` say in
 * `attackCost` what it takes to make that chain up.
 */
export interface Answer {
  readonly result: unknown;
  readonly level?: 'unproven-absence' | 'unproven';
  readonly start?: 'work';
}

/** What a subscription has found (EIP-1193, EIP-758). */
export interface SubscriptionMessage {
  readonly type: 'eth_subscription';
  readonly data: { readonly subscription: string } & Answer;
}

/**
 * Blocks that a subscription may not have told of. A subscription that is not looked at for an hour, as on a computer
 * that sleeps, expires; the provider makes it again under the same id. Ask `eth_getLogs` or `eth_getBlockByNumber` for
 * these blocks. Logs that a reorganisation removed meanwhile are not told of.
 */
export interface GapMessage {
  readonly type: 'rootlight_gap';
  /** Both blocks are part of the gap; `0x` hexadecimal. */
  readonly data: { readonly subscription: string; readonly fromBlock: string; readonly toBlock: string };
}

export type ProviderMessage = SubscriptionMessage | GapMessage;

/** A light client that answers from verified data. */
export interface Provider {
  /** Answers a JSON-RPC call; rejects with a {@link ProviderRpcError}. */
  request(call: RequestArguments): Promise<unknown>;
  /** The same, and what the result is worth: `request` cannot say that a `null` is unproven. */
  requestWithLevel(call: RequestArguments): Promise<Answer>;
  /** What comes of `eth_subscribe`: headers, logs (`removed` where a reorganisation took them back), hashes. */
  on(event: 'message', listener: (message: ProviderMessage) => void): this;
  /**
   * After `close`, or when the provider's WebAssembly module has ended, as it does when its memory is full. All requests
   * under way are rejected with the same error; call {@link createProvider} for a new module. Other providers are not affected.
   */
  on(event: 'disconnect', listener: (error: ProviderRpcError) => void): this;
  /** Other events of EIP-1193 never come: the chain and the accounts stay the same. */
  on(event: string, listener: (value: never) => void): this;
  removeListener(event: string, listener: (value: never) => void): this;
  /** Stops following the chain, rejects what is under way and frees the module's memory. Requests fail from then on. */
  close(): void;
}

/**
 * Sends one JSON-RPC body (a request or a batch) to a node and returns the answer's bytes. An error with a `retryAfter`
 * (seconds, or null) says that the node asks for a pause. An exchange that takes more than 60 seconds has failed.
 */
export interface Transport {
  (body: string): Promise<Uint8Array>;
  /** Calls back whenever the node announces a block: a hint to look, nothing more. */
  heads?(listener: () => void): void;
}

/** How far the way to the head is. */
export interface SyncProgress {
  /** Block where this run started. */
  readonly startingBlock: number;
  /** Newest verified block. */
  readonly currentBlock: number;
  /** Newest block that an upstream announces. */
  readonly highestBlock: number;
  readonly headersPerSecond: number;
  /** At this rate; absent while it is not known. */
  readonly secondsLeft?: number;
}

/** A block that is trusted without proof; everything after it is verified. */
export interface Checkpoint {
  readonly number: number;
  /** `0x` and 64 hexadecimal digits. */
  readonly hash: string;
  /** Total difficulty up to and including it, `0x` hexadecimal; without it blocks have `totalDifficulty: null`. */
  readonly totalDifficulty?: string;
}

/**
 * Keeps values of some 70 kB under short names; there is one for every 64 blocks since the checkpoint. Among the clients
 * that are given the same object one writes at a time. Where several processes share what is behind it, let only one of
 * them write.
 */
export interface HeaderStore {
  get(key: string): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  put(key: string, value: Uint8Array): Promise<void> | void;
}

export interface ProviderOptions {
  /** A network by name. */
  readonly network: 'mainnet' | 'testnet' | 'testnet2' | 'devnet' | 'regtest';
  /**
   * A node's address (http, https, ws or wss), a {@link Transport} of your own, or a list of these. Several upstreams
   * check each other and stand in for each other.
   */
  readonly upstreams?: string | URL | Transport | readonly (string | URL | Transport)[];
  /** @deprecated The former name of `upstreams`. */
  readonly upstream?: ProviderOptions['upstreams'];
  /**
   * Where trust starts: a block, or the newest built-in one by default (genesis on networks without any), which is
   * refused once it is more than a year old. `'work'` trusts no block: it starts from the heaviest chain of recent
   * headers that upstreams prove, says so with every answer (`start`), and keeps no headers. It is refused on networks
   * where work is nearly free, which are all but `mainnet`, and by `createProvider` of `rootlight/dev.js`, whose module
   * has no room for it.
   */
  readonly checkpoint?: Checkpoint | 'work';
  /** Seconds between two looks for new blocks; 10 by default, 0.1 at least. */
  readonly pollSeconds?: number;
  /** Questions in one batch; 50 by default. */
  readonly batch?: number;
  /** Refuse answers about blocks with fewer blocks on top; 0 by default. */
  readonly minDepth?: number;
  /** Refuse answers while the newest verified block is older than so many seconds; 3600 by default, 0 takes any age. */
  readonly maxAge?: number;
  /**
   * Least share, in percent, of the work the checkpoint promises that every 2, 6 and 24 hours of the chain must show; 50
   * by default, 0 asks for none and is refused with `checkpoint: 'work'`.
   */
  readonly minWork?: number;
  /**
   * Answers that no upstream proves: `refuse` them, which is the default, take what N upstreams under different domains
   * say alike, or `trust` the best one. `requestWithLevel` shows which answers those are.
   */
  readonly unproven?: 'refuse' | `quorum:${number}` | 'trust';
  /** Is told of progress until the head is reached. */
  readonly onProgress?: (progress: SyncProgress) => void;
  /**
   * Where verified headers are kept between two runs: IndexedDB by default where there is one, `null` for nowhere, or
   * your own; nowhere with `checkpoint: 'work'`. Nothing that comes back is believed: headers up to the first damaged or foreign page are used, the others
   * are replaced. Of several pages of a site one writes; another one takes over when that one is closed.
   */
  readonly store?: HeaderStore | null;
  /** Is told once, in words, if headers cannot be read or kept; `console.warn` by default. The client works without. */
  readonly onStoreError?: (error: Error) => void;
  /** Makes `createProvider` reject with the signal's reason. It has no effect once the provider exists. */
  readonly signal?: AbortSignal;
  /**
   * Most milliseconds that `createProvider` may take, verification of all headers included; it rejects with code 4900 then.
   * There is no limit by default.
   */
  readonly timeout?: number;
  /** Where to get the WebAssembly module from, if not from beside this file. */
  readonly module?: URL | Request | Response | BufferSource | WebAssembly.Module;
}

/**
 * Verifies the chain up to the upstream's head, then resolves; rejects where that fails. In Node.js a process is kept
 * running while `createProvider` or a request is under way, and not by a provider that waits for blocks.
 */
export function createProvider(options: ProviderOptions): Promise<Provider>;

/** @deprecated The former name of {@link createProvider}. */
export { createProvider as connect };

/** @deprecated The former name of {@link ProviderOptions}. */
export type ConnectOptions = ProviderOptions;

/** Loads and compiles the WebAssembly module ahead of time; each provider has an instance of its own. */
export function load(module?: ProviderOptions['module']): Promise<WebAssembly.Module>;

export interface HttpOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds one exchange may take; 20,000 by default. */
  readonly timeout?: number;
  /** Most bytes taken from one answer; 32 MiB by default. */
  readonly maxBytes?: number;
  readonly fetch?: typeof fetch;
}

/**
 * The transport behind `upstream: URL`, for options of its own. A user and a password in the address are sent as an
 * `authorization` header.
 */
export function httpTransport(url: string | URL, options?: HttpOptions): Transport;

export interface WebSocketOptions {
  /** Milliseconds one exchange may take; 20,000 by default. */
  readonly timeout?: number;
  /** Most characters taken from one answer; 32 Mi by default. */
  readonly maxLength?: number;
  /** For runtimes without one of their own. */
  readonly WebSocket?: unknown;
}

/**
 * The transport behind `upstream: 'wss:...'`, for options of its own and for one client. It looks for new blocks as they
 * are announced.
 */
export function webSocketTransport(url: string | URL, options?: WebSocketOptions): Transport & { close(): void };
