// Elements from text. Nothing here reads HTML: whatever the chain or an upstream says becomes a text node or an attribute's
// value, so a hostile name cannot become an element.

export type Child = Node | string | number | null | undefined | false;

interface Props {
  readonly class?: string;
  /** Listeners by event name. */
  readonly on?: Readonly<Record<string, (event: Event) => void>>;
  /** Attributes; `true` sets an empty one, `false` and `undefined` none. Names come from this program only. */
  readonly [attribute: string]: unknown;
}

/** Makes an element. */
export function el<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === 'on') {
      for (const [event, listener] of Object.entries(props.on ?? {})) made.addEventListener(event, listener);
    } else if (value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? '' : String(value));
    }
  }
  put(made, ...children);
  return made;
}

/** Appends children; leaves out those that are absent. */
export function put(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Milliseconds after which a frame is no longer waited for: a tab that goes to the background draws none. */
const FRAMES = 100;

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

/** Lets the browser answer the visitor between two pieces of work. */
export const yieldToBrowser = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/**
 * Lets the browser draw what was added, so that the layout of several additions is not one long task. A tab in the background draws
 * nothing, and waits for nothing.
 */
export const drawn = (): Promise<void> =>
  document.hidden ? yieldToBrowser() : new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); setTimeout(resolve, FRAMES); });

/** The element of the page with this id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

let ids = 0;

/** A label and a field below it. */
export function field(label: string, input: HTMLElement, hint?: string): HTMLElement {
  ids += 1;
  const id = `field-${ids}`;
  input.id = id;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  return el('div', { class: 'field' }, el('label', { for: id }, label), input, hint && el('p', { id: `${id}-hint`, class: 'hint' }, hint));
}

/** A button that cannot be pressed again before its work is done. */
export function action(label: string, work: () => Promise<unknown> | unknown, kind = ''): HTMLButtonElement {
  const button = el('button', { type: 'button', class: `button ${kind}` }, label);
  button.addEventListener('click', async () => {
    if (button.getAttribute('aria-busy') === 'true') return;
    button.setAttribute('aria-busy', 'true');
    try {
      await work();
    } finally {
      button.removeAttribute('aria-busy');
    }
  });
  return button;
}

/** A form whose button or Enter key starts work; the browser sends nothing. */
export function form(props: Props, work: () => Promise<unknown>, ...children: Child[]): HTMLFormElement {
  const made = el('form', { novalidate: true, ...props }, ...children);
  let busy = false;
  made.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    made.setAttribute('aria-busy', 'true');
    try {
      await work();
    } finally {
      busy = false;
      made.removeAttribute('aria-busy');
    }
  });
  return made;
}
