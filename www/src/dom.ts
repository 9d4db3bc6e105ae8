// Makes elements of the page. Nothing here parses HTML: a text of the chain or of an upstream becomes a text node or an attribute's value, so
// that a hostile name cannot become an element.

/** A child of an element: a node or a text. Absent ones are left out. */
export type Child = Node | string | number | null | undefined | false;

/** Properties of an element. */
interface Props {
  readonly class?: string;
  /** Listeners by event name. */
  readonly on?: Readonly<Record<string, (event: Event) => void>>;
  /** Attributes; `true` sets an empty one, `false` and `undefined` none. Names of attributes are constants of this program, never texts of others. */
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

/** Longest wait for a frame, in milliseconds: a tab that goes to the background draws none. */
const FRAME_TIMEOUT = 100;

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

/** Lets the browser handle the visitor's input between two pieces of work. */
export const yieldToBrowser = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/**
 * Resolves when the browser has drawn what was added, so that the layout of several additions is not one long task. In a tab in the background
 * this resolves at once, because such a tab draws nothing.
 */
export const drawn = (): Promise<void> =>
  document.hidden ? yieldToBrowser() : new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); setTimeout(resolve, FRAME_TIMEOUT); });

/** The element of the page with this id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/** Number of fields so far, from which their ids are made. */
let ids = 0;

/** A label and its field, with a hint below if one is given. */
export function field(label: string, input: HTMLElement, hint?: string): HTMLElement {
  ids += 1;
  const id = `field-${ids}`;
  input.id = id;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  return el('div', { class: 'field' }, el('label', { for: id }, label), input, hint && el('p', { id: `${id}-hint`, class: 'hint' }, hint));
}

/** A button, of the class `kind`, that cannot be pressed again before its work is done. */
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
