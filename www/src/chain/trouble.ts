// Why a server serves no chain that can be proven, for the banner of the page (banner.ts).
import { serverKey } from './key.ts';

/**
 * `key`: the server requires an API key; `refused`: it refuses the key; `down`: it does not answer, or with an HTTP error; `hanging`: it takes
 * requests and does not answer; `syncing`: it synchronizes; `network`: its chain is none of Rootstock; `absent`: there is no node; `unproven`: it
 * answers, and no proof of its chain holds.
 */
export type TroubleKind = 'key' | 'refused' | 'down' | 'hanging' | 'syncing' | 'network' | 'absent' | 'unproven';

/** How far a server that synchronizes is, as it states itself: block numbers. `highest` is 0 while the server does not know it. */
export interface Progress {
  readonly current: number;
  readonly highest: number;
  readonly secondsLeft: number | undefined;
}

/** The error of a source that cannot be used. */
export class Trouble extends Error {
  readonly kind: TroubleKind;
  readonly progress: Progress | undefined;

  constructor(kind: TroubleKind, detail: string, progress?: Progress) {
    super(detail);
    this.kind = kind;
    this.progress = progress;
  }
}

/** HTTP statuses of servers of plain files, which accept no POST. */
const FILE_SERVER = new Set([404, 405, 501]);

/** The trouble of a server, from the error of a request to it: that of pkg/transport.js, whose text is `HTTP status N`, or that of fetch. */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof Trouble) return error;
  const text = error instanceof Error ? error.message : String(error);
  const status = Number(/HTTP status (\d+)/.exec(text)?.[1] ?? 0);
  if (status === 401 || status === 403) return new Trouble(serverKey() === '' ? 'key' : 'refused', `HTTP status ${status}`);
  if (FILE_SERVER.has(status)) return new Trouble('absent', `HTTP status ${status}`);
  if (status > 0) return new Trouble('down', `HTTP status ${status}`);
  // The 10 s are FIRST_TIMEOUT of source.ts.
  if (error instanceof DOMException && error.name === 'TimeoutError') return new Trouble('hanging', 'no answer within 10 s');
  if (error instanceof SyntaxError) return new Trouble('absent', 'something answers there, but not as a node does');
  return new Trouble('down', 'nobody answers there');
}

/** Number of blocks, about an hour, by which a server may be behind and still be of use. */
const MOST_BEHIND = 120;

/** How far a server is by its answer to `rootlight_syncStatus` or `eth_syncing`, if the answer says that it is not ready. */
export function synchronizing(answer: unknown): Progress | undefined {
  const status = answer as Record<string, unknown> | false | null | undefined;
  if (!status || typeof status !== 'object' || status['synced'] === true) return undefined;
  const [current, highest] = [Number(status['currentBlock']), Number(status['highestBlock'])];
  if (!Number.isSafeInteger(current) || !Number.isSafeInteger(highest)) return undefined;
  if (highest > 0 && highest - current <= MOST_BEHIND) return undefined;
  const left = status['secondsLeft'];
  return { current, highest, secondsLeft: typeof left === 'number' ? left : undefined };
}
