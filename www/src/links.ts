// Links to sections end at their headings, also while answers above the section arrive.
import { byId } from './dom.ts';

/** What a visitor scrolls with. Events of a link's click come in the order of pressing, then clicking. */
const SCROLLING = ['wheel', 'touchmove', 'pointerdown', 'keydown'];

/**
 * Keeps the section that a link went to at its place while the page's content changes its height, until the visitor
 * scrolls. Scroll anchoring alone does not: browsers let go of it at a jump, and Safari has none.
 */
export function holdLinkedSections(): void {
  // A key in the fragment names no section.
  let held = document.getElementById(location.hash.slice(1));
  const hold = (link: HTMLAnchorElement) => {
    held = document.getElementById(link.hash.slice(1));
  };
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav a[href^="#"]')) link.addEventListener('click', () => hold(link));
  for (const kind of SCROLLING) addEventListener(kind, () => { held = null; }, { passive: true, capture: true });
  new ResizeObserver(() => held?.scrollIntoView()).observe(byId('main'));
}
