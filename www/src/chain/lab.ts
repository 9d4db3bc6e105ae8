// The development chain in this tab for the sections with a lying node and the playground. It is started when it is first needed.
import type { Source } from './source.ts';
import { tabSource } from './tab.ts';

let started: Promise<Source> | undefined;

/** The development chain of this tab: that of the page's own source, or a new one. */
export function lab(source: Source | undefined): Promise<Source> {
  if (source?.kind === 'tab') return Promise.resolve(source);
  started ??= tabSource();
  return started;
}
