// The sections that need no source. The bundler makes one file of them, which main.ts loads after the first proven answer. The import of below.ts
// lets the bundler put code that both share into that file, instead of into small ones.
import './below.ts';
import type { Session } from './chain/session.ts';
import { byId } from './dom.ts';
import { playgroundView } from './views/playground.ts';
import { tamperView } from './views/tamper.ts';

/** The functions that show the sections, from the top down. Without a session the sections use a chain of their own. */
export const sections = (session: Session | undefined): (() => void)[] => [
  () => tamperView(byId('liar'), session),
  () => playgroundView(byId('playground'), session),
];
