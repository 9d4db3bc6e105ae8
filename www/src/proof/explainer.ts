// Fields of bytes in the drawing of a proof: each is a button that shows its explanation, and fields that must be equal light up together.
import { digits } from '../bytes.ts';
import { el } from '../dom.ts';
import { asOneTabStop } from '../tab-stop.ts';

/** A run of bytes with a name and an explanation. */
export interface Field {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly description: string;
  /** Fields with the same link contain the same bytes, or one is computed from the other. */
  readonly link?: string;
  /** How the field is drawn: `key` for bytes of a step of the proof, `dim` for bytes that no step needs. */
  readonly kind?: 'key' | 'dim';
}

/** Most bytes of a field that its button shows; the explanation shows up to 96. */
const WRITTEN = 32;

/** Bytes as pairs of digits. */
const pairs = (bytes: Uint8Array) => digits(bytes).match(/../g)?.join(' ') ?? '';

/** The bytes of a field, shortened if they are many. */
function written(bytes: Uint8Array): string {
  if (bytes.length === 0) return 'empty';
  if (bytes.length <= WRITTEN) return pairs(bytes);
  return `${pairs(bytes.subarray(0, 8))} … ${pairs(bytes.subarray(-7))}`;
}

/** The hint above the fields. */
export const hint = (): HTMLElement => el('p', { class: 'hint' }, 'Point at any bytes, tap them, or move with the arrow keys: equal bytes light up together, and their meaning is written below.');

/** Shows what a field is when it is pointed at or focused. */
export class Explainer {
  /** The explanation. */
  readonly panel: HTMLElement = el('div', { class: 'explain', 'aria-live': 'polite' });
  /** The element around all fields. */
  private readonly root: HTMLElement;

  constructor(root: HTMLElement) {
    this.root = root;
  }

  /** Shows the explanation of a field, and lights up fields with the same link. */
  show(field: Field): void {
    for (const lit of this.root.querySelectorAll('.lit')) lit.classList.remove('lit');
    if (field.link) {
      for (const same of this.root.querySelectorAll<HTMLElement>('[data-link]')) same.classList.toggle('lit', same.dataset['link'] === field.link);
    }
    const size = field.bytes.length === 1 ? '1 byte' : `${field.bytes.length} bytes`;
    this.panel.replaceChildren(
      el('p', {}, el('strong', {}, field.name), el('span', { class: 'size' }, size), ` ${field.description}`),
      el('p', { class: 'mono whole' }, field.bytes.length > 96 ? `${pairs(field.bytes.subarray(0, 80))} …` : pairs(field.bytes)),
    );
  }

  /** A field as a button. */
  field(field: Field): HTMLElement {
    const show = () => this.show(field);
    return el(
      'button',
      { type: 'button', class: `bytes ${field.kind ?? ''}`, 'data-link': field.link, on: { mouseenter: show, focus: show, click: show } },
      el('span', { class: 'name' }, field.name),
      el('span', { class: 'mono' }, written(field.bytes)),
    );
  }

  /** Fields in a row. */
  row(fields: readonly Field[]): HTMLElement {
    return asOneTabStop(el('div', { class: 'strip' }, ...fields.map((field) => this.field(field))));
  }
}

/** The result of a check: a sentence for success, and one for failure. */
export const verdict = (holds: boolean, good: string, bad: string): HTMLElement =>
  el('p', { class: holds ? 'verdict good' : 'verdict bad' }, el('span', { 'aria-hidden': 'true' }, holds ? '✓ ' : '✗ '), holds ? good : bad);
