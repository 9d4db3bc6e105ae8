// The search field for blocks, transactions and addresses, which leads to their pages.
import { InputError } from '../bytes.ts';
import { el, field, fill, form } from '../dom.ts';
import { refusalView } from './answer.ts';

/** The fragment of the page that a visitor's text names; throws for other text. */
export function routeOf(text: string): string {
  const given = text.trim().replaceAll(/[\s,]/g, '').replace(/^#/, '').toLowerCase();
  if (given === 'latest' || given === 'newest') return '#/block/latest';
  if (/^\d{1,15}$/.test(given)) return `#/block/${Number(given)}`;
  if (/^0x[0-9a-f]{40}$/.test(given)) return `#/address/${given}`;
  if (/^0x[0-9a-f]{64}$/.test(given)) return `#/tx/${given}`;
  if (/^0x[0-9a-f]{1,12}$/.test(given)) return `#/block/${Number(given)}`;
  if (/^0x[0-9a-f]*$/.test(given)) throw new InputError(`an address has 40 hexadecimal digits after 0x, a transaction or a block 64; here are ${given.length - 2}`);
  throw new InputError('write an address or a transaction (0x and hexadecimal digits), or a block’s number');
}

/** Leads to the page whose fragment `address` makes of the visitor's input; shows in `wrong` what is wrong with the input. */
export async function goTo(wrong: HTMLElement, address: () => string): Promise<void> {
  fill(wrong);
  try {
    location.hash = address();
  } catch (error) {
    fill(wrong, refusalView(error));
  }
}

/** Shows the field. Returns a function that sets its example to the number of the newest block. */
export function searchView(root: HTMLElement): (newest: number) => void {
  const input = el('input', { autocomplete: 'off', spellcheck: 'false', placeholder: '0x… or a number', type: 'search' });
  const wrong = el('div', { 'aria-live': 'polite' });
  const find = () => goTo(wrong, () => routeOf(input.value));
  fill(root, form({ class: 'search', role: 'search' }, find, field('Address, transaction or block', input), el('button', { class: 'button main' }, 'Prove it')), wrong);
  return (newest) => { input.placeholder = `0x… or ${newest}`; };
}
