// Keeps the section that a link leads to in view, while answers that arrive above it change the height of the page.
import { byId } from './dom.ts';

/** Events with which a visitor scrolls, which end the hold. A press on a link is among them; its click comes later and begins the next hold. */
const SCROLLING = ['wheel', 'touchmove', 'pointerdown', 'keydown'];

/** The section that a fragment names; null if the fragment is empty or a key. */
const sectionOf = (fragment: string): HTMLElement | null => document.getElementById(fragment.slice(1));

/**
 * Keeps the section that a link or the page's address leads to in place while the height of the content changes, until the visitor scrolls. The
 * browsers' scroll anchoring does not suffice: a jump to a fragment ends it, and Safari has none.
 */
export function holdLinkedSections(): void {
  let held = sectionOf(location.hash);
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav a[href^="#"]')) {
    link.addEventListener('click', () => { held = sectionOf(link.hash); });
  }
  for (const kind of SCROLLING) addEventListener(kind, () => { held = null; }, { passive: true, capture: true });
  new ResizeObserver(() => held?.scrollIntoView()).observe(byId('main'));
}
