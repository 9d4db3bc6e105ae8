// The errors that docs/errors.md lists.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** The words of each cause. */
export const WORDS = new Map(
  [...readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8').matchAll(/^\| ([^|]+) \| `([^`]+)` \|$/gm)].map(([, cause, words]) => [cause, words]),
);

/** Checks that an error is the documented one of a cause, about the upstream of this name. */
export function checkWords(cause, name, message) {
  const words = WORDS.get(cause).replaceAll('UPSTREAM', name).split('…');
  const pattern = words.map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')).join('.*');
  assert.match(message, new RegExp(pattern), cause);
}
