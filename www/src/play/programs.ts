// The playground's contracts: forms to write them in assembly, to deploy them, and to call them.
import { fromHex, grouped, InputError, safeText, short, toHex } from '../bytes.ts';
import { assemble, deployment } from '../contracts/assemble.ts';
import { callData } from '../contracts/abi.ts';
import { type ContractFunction, interfaceOf, signatureOf } from '../contracts/interface.ts';
import { COUNTER, COUNTER_ABI, SUPPLY, TOKEN_ABI, tokenSource } from '../contracts/samples.ts';
import { action, el, field, fill, form } from '../dom.ts';
import { asOneTabStop } from '../tab-stop.ts';
import { readings } from '../views/contract.ts';
import { functionView } from '../views/functions.ts';
import { type Bench, type Deployed, options } from './bench.ts';
import { traceButton } from './trace.ts';

/** A contract that the form offers. */
interface Sample {
  readonly name: string;
  readonly source: string;
  readonly abi: string;
  /** The code that the deployment runs first. */
  readonly first?: string;
}

/** The contracts that the form offers. */
const SAMPLES: readonly Sample[] = [
  { name: 'A counter', source: COUNTER, abi: COUNTER_ABI },
  { name: 'A token', source: tokenSource('My Token', 'MINE'), abi: TOKEN_ABI, first: `PUSH ${SUPPLY} CALLER SSTORE` },
  { name: 'Bytecode of your own', source: '; The bytes that a compiler gives for deployment, for example\n0x600160005260206000f3', abi: '' },
];

/** The data that deploys what is written: assembly of a contract's code, or deployment bytes in hexadecimal. */
function deployable(source: string, first = ''): string {
  const plain = source.replaceAll(/;.*/g, '').replaceAll(/\s+/g, '');
  if (plain === '' || plain === '0x') throw new InputError('there is no code: write instructions, or the bytes that a compiler gives');
  return plain.startsWith('0x') ? toHex(fromHex(plain)) : toHex(deployment(assemble(source), first));
}

/** Characters of `0x` and a selector at the beginning of call data. */
const SELECTOR_END = 10;

/** The arguments of a constructor as hexadecimal digits, which follow the deployment bytes. */
const constructed = ({ inputs }: ContractFunction, given: string): string => callData(`constructor(${inputs.map(({ type }) => type).join()})`, listed(given)).slice(SELECTOR_END);

/** Arguments that are separated by commas. */
const listed = (text: string): string[] => text.split(',').map((value) => value.trim()).filter(Boolean);

/** The form that deploys a contract. */
export function deployForm(bench: Bench): HTMLElement {
  const sample = el('select');
  const source = el('textarea', { spellcheck: 'false', autocomplete: 'off' });
  const abi = el('textarea', { class: 'short', spellcheck: 'false', autocomplete: 'off' });
  const values = el('input', { autocomplete: 'off', spellcheck: 'false' });
  options(sample, SAMPLES.map(({ name }, at) => [String(at), name]));
  const chosen = () => SAMPLES[Number(sample.value)] ?? SAMPLES[0];
  const fillIn = () => {
    source.value = chosen()?.source ?? '';
    abi.value = chosen()?.abi ?? '';
    values.value = '';
  };
  sample.addEventListener('change', fillIn);
  fillIn();
  let count = 0;
  const deploy = () => bench.attempt(async () => {
    const { first, name = '' } = chosen() ?? {};
    const code = deployable(source.value, first);
    const known = abi.value.trim() === '' ? undefined : interfaceOf(abi.value);
    const data = known?.creation ? code + constructed(known.creation, values.value) : code;
    const receipt = await bench.send({ from: bench.accounts[0], data });
    if (receipt.status !== '0x1' || !receipt.contractAddress) throw new Error(`the deployment ${bench.outcome(receipt)}`);
    count += 1;
    bench.contracts.unshift({ name: `${name} ${count}`, address: receipt.contractAddress, functions: known?.functions ?? [] });
    bench.tell('good', `${name} is at ${short(receipt.contractAddress, 4, 4)}, ${bench.outcome(receipt)} `, traceButton(bench, receipt.transactionHash));
    bench.changed();
  });
  return form({ class: 'form' }, deploy,
    field('Contract', sample),
    field('Its code', source, 'Instructions of the EVM, as Rootstock runs them, or the bytecode of a compiler. Change them as you like.'),
    field('Its ABI', abi, 'What a compiler writes beside the bytecode. With it, functions become buttons.'),
    field('Arguments of its constructor', values, 'Separated by commas; empty if it takes none.'),
    el('div', {}, el('button', { class: 'button main' }, 'Deploy')));
}

/** Calls a contract without a transaction, and adds its answer to the list of events. */
const ask = (bench: Bench, to: string, name: string, data: () => string) => bench.attempt(async () => {
  const answer = String(await bench.ask('eth_call', { from: bench.accounts[0], to, data: data() }, 'latest'));
  bench.tell('', `${name} answers ${safeText(readings(answer))}`);
});

/** Sends a transaction to a contract, and adds its outcome to the list of events. */
const send = (bench: Bench, to: string, name: string, data: () => string) => bench.attempt(async () => {
  const receipt = await bench.send({ from: bench.accounts[0], to, data: data() });
  const logs = receipt.logs.length === 0 ? '' : `, ${grouped(receipt.logs.length)} log${receipt.logs.length === 1 ? '' : 's'}`;
  bench.tell(receipt.status === '0x1' ? 'good' : 'bad', `${name} ${bench.outcome(receipt)}${logs} `, traceButton(bench, receipt.transactionHash));
});

/** A call that is written by hand: a signature and arguments, or call data. */
function byHand(bench: Bench, to: string): HTMLElement {
  const method = el('input', { autocomplete: 'off', spellcheck: 'false' });
  const values = el('input', { autocomplete: 'off', spellcheck: 'false' });
  const data = () => callData(method.value, listed(values.value));
  return form({ class: 'form' }, () => ask(bench, to, method.value, data),
    el('div', { class: 'two' }, field('Function', method, 'Such as number(), or call data in hexadecimal.'), field('Arguments', values, 'Separated by commas.')),
    el('div', { class: 'row' }, el('button', { class: 'button main' }, 'Ask'), action('Send as a transaction', () => send(bench, to, method.value, data))));
}

/** The functions of a contract as buttons; the form of the chosen one is below them. */
function functionButtons(bench: Bench, { address, functions }: Deployed): HTMLElement {
  const body = el('div');
  const choices: (readonly [name: string, make: () => HTMLElement])[] = [
    ...functions.map((each) => [each.name, () => {
      const [asks, sends] = [['Ask', (data: () => string) => ask(bench, address, signatureOf(each), data)], ['Send as a transaction', (data: () => string) => send(bench, address, signatureOf(each), data)]] as const;
      return functionView(each, each.reads ? [asks, sends] : [sends, asks], { address: bench.accounts[1] ?? '' });
    }] as const),
    ['by hand', () => byHand(bench, address)],
  ];
  const tabs = choices.map(([name, make]) => {
    const tab = el('button', { type: 'button', class: 'tab', 'aria-pressed': 'false' }, name);
    tab.addEventListener('click', () => {
      for (const other of tabs) other.setAttribute('aria-pressed', String(other === tab));
      fill(body, make());
    });
    return tab;
  });
  tabs[0]?.click();
  return el('div', {}, asOneTabStop(el('div', { class: 'tabs', role: 'group', 'aria-label': 'What to call' }, ...tabs)), body);
}

/** The panel that calls a contract of the playground. */
export function callPanel(bench: Bench): HTMLElement {
  const contract = el('select');
  const body = el('div', { class: 'calls' });
  const open = () => {
    const found = bench.contracts.find(({ address }) => address === contract.value);
    if (found) fill(body, functionButtons(bench, found));
  };
  /** Number of contracts that the select lists. */
  let listedCount = -1;
  const update = () => {
    if (bench.contracts.length === listedCount) return;
    listedCount = bench.contracts.length;
    options(contract, bench.contracts.map(({ address, name }) => [address, `${name} · ${short(address, 4, 4)}`]));
    contract.value = bench.contracts[0]?.address ?? '';
    open();
  };
  contract.addEventListener('change', open);
  bench.onChange(update);
  update();
  return el('div', {}, el('div', { class: 'form' }, field('Contract to call', contract)), body,
    el('p', { class: 'hint' }, 'Asking is free and changes nothing; a transaction changes the chain.'));
}
