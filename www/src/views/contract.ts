// The explorer's forms for calls of contracts and for tokens. A token's answer is four calls of its contract.
import type { Block, Session } from '../chain/session.ts';
import { grouped, rbtc, toAddress, units } from '../bytes.ts';
import { addressOf, callData, number, text, words } from '../contracts/abi.ts';
import { el, field, form } from '../dom.ts';
import { type AccountProof, accountTrail, cellTrail, pinnedBlock } from './account.ts';
import { type AnswerCard, answerView, claimInWords, claimOf, clipped, provenInWords, resultDisplay } from './answer.ts';
import type { Trail } from './trail.ts';

/** Most storage cells whose paths are drawn. */
const MOST_CELLS = 3;

/** The cells that earlier calls read, by call. The client stores proofs, so that it requests none for a second call at the same block. */
const remembered = new Map<string, readonly string[]>();

/** Runs a call, and returns its result with the storage cells of the contract that it read. `key` names the call. */
async function withCells<T>(session: Session, contract: string, key: string, work: () => Promise<T>): Promise<[result: T, cells: readonly string[]]> {
  session.requestedCells.delete(contract);
  const done = await work();
  const cells = [...(session.requestedCells.get(contract) ?? remembered.get(key) ?? [])];
  remembered.set(key, cells);
  return [done, cells];
}

/** The proof of a contract and of the first cells that a call read. */
const proofOf = (session: Session, block: Block, contract: string, cells: readonly string[]): Promise<AccountProof> =>
  session.request('eth_getProof', contract, cells.slice(0, MOST_CELLS), block.number) as Promise<AccountProof>;

/** The paths to the storage cells of a proof, and to its contract. */
function trailsOf(block: Block, contract: string, proof: AccountProof): Trail[] {
  const cells = proof.storageProof.map((cell) => cellTrail(block, contract, cell, `Proof of what the call read, cell ${cell.key.length > 20 ? `${cell.key.slice(0, 12)}…` : cell.key}`));
  return [...cells, accountTrail(block, contract, proof, 'Proof of the contract')];
}

/** A token's answer about a holder, from both sides, and the state that the proven answers were computed from. */
export interface TokenAnswer extends AnswerCard {
  readonly proof: AccountProof;
  /** The question about the balance, and what the node says. */
  readonly question: readonly ['eth_call', { readonly to: string; readonly data: string }, string];
  readonly claim: unknown;
  /** The proven answer in bytes. */
  readonly bytes: string;
}

/** Asks both sides about a token (`to`) and a holder (`who`). */
export async function tokenAnswer(session: Session, to: string, who: string): Promise<TokenAnswer> {
  const block = await pinnedBlock(session);
  const at = block.number;
  const data = { name: callData('name()', []), symbol: callData('symbol()', []), decimals: callData('decimals()', []), balance: callData('balanceOf(address)', [who]) };
  const proven = (input: string) => session.answer('eth_call', { to, data: input }, at);
  const claimed = (input: string) => claimOf(session, 'eth_call', { to, data: input }, at);
  const [answers, cells] = await withCells(session, to, `${to}${who}`, () => Promise.all([proven(data.name), proven(data.symbol), proven(data.decimals), proven(data.balance)]));
  const [claimedName, claimedSymbol, claimedDecimals, claimedBalance] = await Promise.all([claimed(data.name), claimed(data.symbol), claimed(data.decimals), claimed(data.balance)]);
  const [name, symbol, decimals, balance] = answers.map(({ result: value }) => String(value));
  const label = (answer: string) => text(answer) ?? 'no text';
  /** A balance in words, by the answer to `decimals()`. More than 77 decimals make no sense for a number of 256 bits. */
  const amount = (decimalsAnswer: unknown) => (answer: string) => {
    const [count, places] = [number(answer), number(String(decimalsAnswer)) ?? 0n];
    return count === undefined ? 'no number' : places > 77n ? grouped(count) : units(count, Number(places));
  };
  const proof = await proofOf(session, block, to, cells);
  const shown = provenInWords(balance, amount(decimals));
  // A lie about the decimals and the number together may be the same in words as the truth.
  const claimedAmount = (answer: string) => {
    const words = amount(claimedDecimals ?? decimals)(answer);
    return words === shown && number(answer) !== number(String(balance)) ? `${words}, as ${number(answer)} with other decimals` : words;
  };
  return {
    lines: [
      { name: 'Balance', claimed: claimInWords(claimedBalance, claimedAmount), proven: shown },
      { name: 'Name', claimed: claimInWords(claimedName, label), proven: provenInWords(name, label) },
      { name: 'Symbol', claimed: claimInWords(claimedSymbol, label), proven: provenInWords(symbol, label) },
    ],
    level: answers[3]?.level, block, verification: await session.verification(at), trails: trailsOf(block, to, proof), proof,
    question: ['eth_call', { to, data: data.balance }, at], claim: claimedBalance, bytes: balance ?? '0x',
  };
}

/** The hint about a holder's address. */
export const HOLDER = 'Whose balance is asked for: the account or contract that has some of the token.';

/** The form for tokens, and the answer below it. */
export function tokenForm(session: Session): HTMLElement {
  const { token, account } = session.source;
  const contract = el('input', { value: token ?? '', autocomplete: 'off', spellcheck: 'false', required: true });
  const holder = el('input', { value: account ?? '', autocomplete: 'off', spellcheck: 'false', required: true });
  const result = el('div');
  const show = resultDisplay(result, session);
  const ask = () => show(async () => answerView(session, await tokenAnswer(session, toAddress(contract.value), toAddress(holder.value))));
  if (contract.value && holder.value) void ask();
  return el('div', {}, form({ class: 'form' }, ask,
    el('div', { class: 'two' }, field('Address of the token', contract), field('Address of the holder', holder, HOLDER)),
    el('div', {}, el('button', { class: 'button main' }, 'Prove the balance'))), result);
}

/** The possible meanings of a contract's answer, in words: the answer does not say which type it has. */
export function readings(answer: string): string {
  const value = number(answer);
  const said = text(answer);
  if (value === undefined) return said ?? (answer === '0x' ? 'nothing' : `${words(answer).length} words`);
  // Numbers of the usual size of addresses, and of amounts between 0.001 and 100 million coins.
  const address = value > 1n << 100n && value < 1n << 160n ? `, or the address ${addressOf(answer)}` : '';
  return `${grouped(value)}${value > 10n ** 15n && value < 10n ** 26n ? `, as an amount ${rbtc(value).replace(' RBTC', '')}` : ''}${address}`;
}

/** The form for calls, and the answer below it. */
export function callForm(session: Session): HTMLElement {
  const contract = el('input', { value: session.source.token ?? '', autocomplete: 'off', spellcheck: 'false', required: true });
  const method = el('input', { value: 'totalSupply()', autocomplete: 'off', spellcheck: 'false', required: true });
  const values = el('input', { value: '', autocomplete: 'off', spellcheck: 'false' });
  const result = el('div');
  const show = resultDisplay(result, session);
  const ask = () => show(async () => {
    const to = toAddress(contract.value);
    const data = callData(method.value, values.value.split(',').map((value) => value.trim()).filter(Boolean));
    const block = await pinnedBlock(session);
    const at = block.number;
    const [answer, cells] = await withCells(session, to, `${to}${data}`, () => session.answer('eth_call', { to, data }, at));
    const claimed = await claimOf(session, 'eth_call', { to, data }, at);
    const proven = String(answer.result);
    return answerView(session, {
      lines: [
        { name: 'In words', claimed: claimInWords(claimed, readings), proven: readings(proven) },
        { name: 'Bytes', claimed: claimInWords(claimed, clipped), proven: clipped(proven), mono: true },
      ],
      level: answer.level, block, verification: await session.verification(at), trails: trailsOf(block, to, await proofOf(session, block, to, cells)),
    });
  });
  if (contract.value) void ask();
  return el('div', {}, form({ class: 'form' }, ask,
    field('Address of the contract', contract),
    el('div', { class: 'two' },
      field('Function', method, 'Such as balanceOf(address), or call data in hexadecimal.'),
      field('Arguments', values, 'Separated by commas.')),
    el('div', {}, el('button', { class: 'button main' }, 'Call and prove'))), result);
}
