// Why a server gives no chain that can be proven. An absent answer is never taken for another answer.
import { serverKey } from './key.ts';

export type TroubleKind = 'key' | 'refused' | 'down' | 'hanging' | 'syncing' | 'network' | 'absent' | 'unproven';

/** How far a server is that synchronizes, as the server says it. */
export interface Progress {
  readonly current: number;
  readonly highest: number;
  readonly secondsLeft: number | undefined;
}

export class Trouble extends Error {
  readonly kind: TroubleKind;
  readonly progress: Progress | undefined;

  constructor(kind: TroubleKind, detail: string, progress?: Progress) {
    super(detail);
    this.kind = kind;
    this.progress = progress;
  }
}

/** Statuses of servers of files, which take no POST. */
const FILES = new Set([404, 405, 501]);

/** The trouble of a server, from an exchange's error. */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof Trouble) return error;
  const text = error instanceof Error ? error.message : String(error);
  const status = Number(/HTTP status (\d+)/.exec(text)?.[1] ?? 0);
  if (status === 401 || status === 403) return new Trouble(serverKey() === '' ? 'key' : 'refused', `HTTP status ${status}`);
  if (FILES.has(status)) return new Trouble('absent', `HTTP status ${status}`);
  if (status > 0) return new Trouble('down', `HTTP status ${status}`);
  if (error instanceof DOMException && error.name === 'TimeoutError') return new Trouble('hanging', 'no answer within 10 s');
  if (error instanceof SyntaxError) return new Trouble('absent', 'something answers there, but not as a node does');
  return new Trouble('down', 'nobody answers there');
}

/** Blocks that a server may lack and still be of use. */
const BEHIND = 120;

/** How far a server is by its answer to `rootlight_syncStatus` or `eth_syncing`, if the answer says that it is not ready. */
export function synchronizing(answer: unknown): Progress | undefined {
  const status = answer as Record<string, unknown> | false | null | undefined;
  if (!status || typeof status !== 'object' || status['synced'] === true) return undefined;
  const [current, highest] = [Number(status['currentBlock']), Number(status['highestBlock'])];
  if (!Number.isSafeInteger(current) || !Number.isSafeInteger(highest)) return undefined;
  if (highest > 0 && highest - current <= BEHIND) return undefined;
  const left = status['secondsLeft'];
  return { current, highest, secondsLeft: typeof left === 'number' ? left : undefined };
}
