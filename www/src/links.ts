// Links to sections end at their headings, also while answers above the section arrive.
import { byId } from './dom.ts';

/** Events of scrolling. A press on a link comes before its click, which holds the link's section. */
const SCROLLING = ['wheel', 'touchmove', 'pointerdown', 'keydown'];

/** The section that a fragment names; null if the fragment is empty or a key. */
const sectionOf = (fragment: string): HTMLElement | null => document.getElementById(fragment.slice(1));

/**
 * Keeps the section that a link or the page's address leads to in place while the height of the content changes, until the
 * visitor scrolls. Scroll anchoring alone does not: browsers let go of it at a jump, and Safari has none.
 */
export function holdLinkedSections(): void {
  let held = sectionOf(location.hash);
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav a[href^="#"]')) {
    link.addEventListener('click', () => { held = sectionOf(link.hash); });
  }
  for (const kind of SCROLLING) addEventListener(kind, () => { held = null; }, { passive: true, capture: true });
  new ResizeObserver(() => held?.scrollIntoView()).observe(byId('main'));
}
