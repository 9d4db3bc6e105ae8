// Makes a group of buttons one stop of the Tab key; arrow keys move within the group.

/** The position to which each key moves from position `at` among `count` buttons. */
const MOVES: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowDown: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  ArrowUp: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** Makes the buttons of an element one Tab stop. Called again after buttons were added, it includes them. */
export function asOneTabStop<Group extends HTMLElement>(group: Group): Group {
  const buttons = () => [...group.querySelectorAll<HTMLElement>('button')];
  const stop = (chosen: HTMLElement) => {
    for (const button of buttons()) button.tabIndex = button === chosen ? 0 : -1;
  };
  const [first] = buttons();
  if (first) stop(buttons().find((button) => button.getAttribute('aria-pressed') === 'true') ?? first);
  if (group.dataset['oneTabStop']) return group;
  group.dataset['oneTabStop'] = 'yes';
  group.addEventListener('focusin', ({ target }) => {
    const button = (target as HTMLElement).closest<HTMLElement>('button');
    if (button) stop(button);
  });
  group.addEventListener('keydown', (event) => {
    const move = MOVES[event.key];
    const all = buttons();
    const at = all.findIndex((button) => button === event.target);
    if (!move || at < 0) return;
    event.preventDefault();
    all[move(at, all.length)]?.focus();
  });
  return group;
}
