// The upstreams of a server that is itself a light client, as the server describes them. The description is not proven.
import { safeText } from '../bytes.ts';

/** An upstream of the server. */
export interface Served {
  readonly name: string;
  /** Why the server does not ask it at present; `null` while it answers. */
  readonly resting: string | null;
  /** Number of lies that the server has caught. */
  readonly lies: number;
  /** Whether it proves state; `null` if the server has not asked it yet. */
  readonly stateProofs: boolean | null;
}

/** Most upstreams that are listed, and most characters of a text about one. */
const MOST_UPSTREAMS = 50;
const MOST_CHARACTERS = 200;

/** A text of the server, safe to show. */
const words = (given: unknown): string => safeText(String(given).slice(0, MOST_CHARACTERS));

/** The upstreams in a server's answer to `rootlight_upstreams`; none for servers without upstreams. */
export function servedOf(answer: unknown): readonly Served[] {
  if (!Array.isArray(answer)) return [];
  return answer.slice(0, MOST_UPSTREAMS).map((each: Record<string, unknown> | null) => ({
    name: words(each?.['name'] ?? 'an upstream'),
    resting: each?.['resting'] === null || each?.['resting'] === undefined ? null : words(each['resting']),
    lies: Number.isSafeInteger(each?.['lies']) ? Number(each?.['lies']) : 0,
    stateProofs: typeof each?.['stateProofs'] === 'boolean' ? each['stateProofs'] : null,
  }));
}

/** The number of upstreams that answer and were not caught lying. */
export const honest = (served: readonly Served[]): number => served.filter(({ resting, lies }) => resting === null && lies === 0).length;

/** The number of upstreams that do not answer. */
export const silent = (served: readonly Served[]): number => served.filter(({ resting }) => resting !== null).length;
