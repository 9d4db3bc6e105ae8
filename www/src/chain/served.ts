// The upstreams of a server that is itself a light client, as the server says it. Nothing of it is proven.
import { safeText } from '../bytes.ts';

export interface Served {
  readonly name: string;
  /** Why it is left alone; `null` while it answers. */
  readonly resting: string | null;
  readonly lies: number;
  readonly stateProofs: boolean | null;
}

/** Most upstreams that are listed, and most characters of a text about one. */
const MOST = 50;
const LONGEST = 200;

const words = (given: unknown): string => safeText(String(given).slice(0, LONGEST));

/** The answer to `rootlight_upstreams`; the list is empty for servers without upstreams. */
export function servedOf(answer: unknown): readonly Served[] {
  if (!Array.isArray(answer)) return [];
  return answer.slice(0, MOST).map((each: Record<string, unknown> | null) => ({
    name: words(each?.['name'] ?? 'an upstream'),
    resting: each?.['resting'] === null || each?.['resting'] === undefined ? null : words(each['resting']),
    lies: Number.isSafeInteger(each?.['lies']) ? Number(each?.['lies']) : 0,
    stateProofs: typeof each?.['stateProofs'] === 'boolean' ? each['stateProofs'] : null,
  }));
}

/** How many of them answer and were not caught. */
export const honest = (served: readonly Served[]): number => served.filter(({ resting, lies }) => resting === null && lies === 0).length;

/** How many of them do not answer. */
export const silent = (served: readonly Served[]): number => served.filter(({ resting }) => resting !== null).length;
