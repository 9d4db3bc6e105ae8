// The playground's accounts with free coins, and payments between them.
import { quantity, rbtc, short, toAddress, toWei } from '../bytes.ts';
import { el, field, fill, form } from '../dom.ts';
import { type Bench, options } from './bench.ts';
import { traceButton } from './trace.ts';

/** Accounts that are shown. */
const SHOWN = 5;

/** The name of an account of the chain, or the address. */
const nameOf = (bench: Bench, address: string): string => {
  const index = bench.accounts.indexOf(address);
  return index < 0 ? short(address, 4, 4) : `Account ${index + 1}`;
};

/** The table of accounts, which follows the chain. */
export function accountsTable(bench: Bench): HTMLElement {
  const body = el('tbody');
  const update = async () => {
    const rows = await Promise.all(bench.accounts.slice(0, SHOWN).map(async (address) => {
      const [balance, nonce] = await Promise.all([bench.ask('eth_getBalance', address, 'latest'), bench.ask('eth_getTransactionCount', address, 'latest')]);
      return el('tr', {}, el('th', { scope: 'row' }, nameOf(bench, address)), el('td', { class: 'mono' }, short(address, 4, 4)), el('td', {}, rbtc(BigInt(String(balance)))), el('td', {}, Number(nonce)));
    }));
    fill(body, ...rows);
  };
  bench.onChange(() => void update());
  void update();
  const heads = ['', 'Address', 'Balance', 'Sent'].map((text) => (text ? el('th', { scope: 'col' }, text) : el('td', {})));
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Accounts' }, el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body));
}

/** The form that sends a payment. */
export function payForm(bench: Bench): HTMLElement {
  const [from, to] = [el('select'), el('select')];
  const amount = el('input', { value: '1', inputmode: 'decimal', autocomplete: 'off' });
  const entries = bench.accounts.map((address, at) => [address, `Account ${at + 1}`] as const);
  options(from, entries);
  options(to, [...entries.slice(1), ...entries.slice(0, 1)]);
  const pay = () => bench.attempt(async () => {
    const value = toWei(amount.value);
    const receipt = await bench.send({ from: from.value, to: toAddress(to.value), value: quantity(value) });
    bench.tell(receipt.status === '0x1' ? 'good' : 'bad', `${nameOf(bench, from.value)} paid ${rbtc(value)} to ${nameOf(bench, to.value)}, ${bench.outcome(receipt)} `, traceButton(bench, receipt.transactionHash));
  });
  return form({ class: 'form' }, pay,
    el('div', { class: 'two' }, field('From', from), field('To', to), field('Amount in RBTC', amount)),
    el('div', {}, el('button', { class: 'button main' }, 'Send')));
}
