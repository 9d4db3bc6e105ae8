// Contracts: written in assembly, deployed, and called.
import { grouped, InputError, short, toHex, fromHex } from '../bytes.ts';
import { assemble, deployment } from '../contracts/assemble.ts';
import { callData } from '../contracts/abi.ts';
import { COUNTER, SUPPLY, tokenSource } from '../contracts/samples.ts';
import { action, el, field, form } from '../dom.ts';
import { readings } from '../views/contract.ts';
import { type Bench, options } from './bench.ts';
import { traceButton } from './trace.ts';

interface Sample {
  readonly name: string;
  readonly source: string;
  readonly example: string;
  /** What the deployment runs first. */
  readonly first?: string;
}

const SAMPLES: readonly Sample[] = [
  { name: 'A counter', source: COUNTER, example: 'increment()' },
  { name: 'A token', source: tokenSource('My Token', 'MINE'), example: 'totalSupply()', first: `PUSH ${SUPPLY} CALLER SSTORE` },
  { name: 'Bytecode of your own', source: '; The bytes that a compiler gives for deployment, for example\n0x600160005260206000f3', example: '' },
];

/** The data that deploys what is written: assembly of a contract's code, or deployment bytes in hexadecimal. */
function deployable(source: string, first = ''): string {
  const plain = source.replaceAll(/;.*/g, '').replaceAll(/\s+/g, '');
  if (plain === '' || plain === '0x') throw new InputError('there is no code: write instructions, or the bytes that a compiler gives');
  return plain.startsWith('0x') ? toHex(fromHex(plain)) : toHex(deployment(assemble(source), first));
}

export function deployForm(bench: Bench): HTMLElement {
  const sample = el('select');
  const source = el('textarea', { spellcheck: 'false', autocomplete: 'off' });
  options(sample, SAMPLES.map(({ name }, at) => [String(at), name]));
  const chosen = () => SAMPLES[Number(sample.value)] ?? SAMPLES[0];
  const fillIn = () => {
    source.value = chosen()?.source ?? '';
  };
  sample.addEventListener('change', fillIn);
  fillIn();
  let count = 0;
  const deploy = () => bench.attempt(async () => {
    const { first, name = '', example = '' } = chosen() ?? {};
    const data = deployable(source.value, first);
    const receipt = await bench.send({ from: bench.accounts[0], data });
    if (receipt.status !== '0x1' || !receipt.contractAddress) throw new Error(`the deployment ${bench.outcome(receipt)}`);
    count += 1;
    bench.contracts.unshift({ name: `${name} ${count}`, address: receipt.contractAddress, example });
    bench.tell('good', `${name} is at ${short(receipt.contractAddress, 4, 4)}, ${bench.outcome(receipt)} `, traceButton(bench, receipt.transactionHash));
    bench.changed();
  });
  return form({ class: 'form' }, deploy,
    field('Contract', sample),
    field('Its code', source, 'Instructions of the EVM, as Rootstock runs them. Change them as you like.'),
    el('div', {}, el('button', { class: 'button main' }, 'Deploy')));
}

export function callPanel(bench: Bench): HTMLElement {
  const contract = el('select');
  const method = el('input', { autocomplete: 'off', spellcheck: 'false' });
  const values = el('input', { autocomplete: 'off', spellcheck: 'false' });
  const update = () => options(contract, bench.contracts.map(({ address, name }) => [address, `${name} · ${short(address, 3, 3)}`]));
  const example = () => {
    const found = bench.contracts.find(({ address }) => address === contract.value);
    method.value = found?.example ?? '';
    values.value = method.value.includes('address') ? (bench.accounts[1] ?? '') : '';
  };
  let known = 0;
  bench.onChange(() => {
    const grown = bench.contracts.length !== known;
    known = bench.contracts.length;
    if (!grown) return;
    update();
    contract.value = bench.contracts[0]?.address ?? '';
    example();
  });
  contract.addEventListener('change', example);
  update();
  example();
  known = bench.contracts.length;
  const data = () => callData(method.value, values.value.split(',').map((value) => value.trim()).filter(Boolean));
  const ask = () => bench.attempt(async () => {
    const answer = String(await bench.ask('eth_call', { from: bench.accounts[0], to: contract.value, data: data() }, 'latest'));
    bench.tell('', `${method.value} answers ${readings(answer)}`);
  });
  const send = () => bench.attempt(async () => {
    const receipt = await bench.send({ from: bench.accounts[0], to: contract.value, data: data() });
    const logs = receipt.logs.length === 0 ? '' : `, ${grouped(receipt.logs.length)} log${receipt.logs.length === 1 ? '' : 's'}`;
    bench.tell(receipt.status === '0x1' ? 'good' : 'bad', `${method.value} ${bench.outcome(receipt)}${logs} `, traceButton(bench, receipt.transactionHash));
  });
  return form({ class: 'form' }, ask,
    field('Contract', contract),
    el('div', { class: 'two' }, field('Function', method), field('Arguments', values, 'Separated by commas.')),
    el('div', { class: 'row' }, el('button', { class: 'button main' }, 'Ask'), action('Send as a transaction', send), el('span', { class: 'hint' }, 'Asking is free and changes nothing; a transaction changes the chain.')));
}
