// The sections that need no source, as one file that is loaded after the first proven answer.
// The bundler puts what the files share into that one, instead of small files.
import './below.ts';
import type { Session } from './chain/session.ts';
import { byId } from './dom.ts';
import { playgroundView } from './views/playground.ts';
import { tamperView } from './views/tamper.ts';

/** The functions that show the sections in their order. Without a session they have a chain of their own. */
export const sections = (session: Session | undefined): (() => void)[] => [
  () => tamperView(byId('liar'), session),
  () => playgroundView(byId('playground'), session),
];
