// The functions of a contract as forms, from an ABI that a visitor pastes or that a Sourcify server publishes.
import { type ContractFunction, functionsOf, signatureOf } from '../contracts/interface.ts';
import { callData } from '../contracts/abi.ts';
import { publishedFunctions, sourcifyAddress } from '../contracts/sourcify.ts';
import type { Session } from '../chain/session.ts';
import { safeText } from '../bytes.ts';
import { action, type Child, el, field, fill, form, put } from '../dom.ts';
import { pinnedBlock } from './account.ts';
import { answerView, claimInWords, claimOf, clipped, provenInWords, refusalView, resultDisplay } from './answer.ts';
import { readings } from './contract.ts';

/** The label of a function's button, and its action on the call data. */
export type Way = readonly [label: string, work: (data: () => string) => Promise<unknown>];

/** The form of a function, with a field for each argument and a button for each way. `address` fills the first field for an address. */
export function functionView(given: ContractFunction, ways: readonly Way[], { result, address = '', description }: { readonly result?: Child; readonly address?: string; readonly description?: Child } = {}): HTMLElement {
  const first = given.inputs.findIndex(({ type }) => type === 'address');
  const inputs = given.inputs.map((_, at) => el('input', { autocomplete: 'off', spellcheck: 'false', value: at === first ? address : '' }));
  const data = () => callData(signatureOf(given), inputs.map(({ value }) => value));
  const [main, ...others] = ways;
  return form({ class: 'function' }, async () => main?.[1](data),
    el('p', {}, el('code', { class: 'mono break' }, safeText(signatureOf(given)))),
    inputs.length > 0 && el('div', { class: 'two' }, ...inputs.map((input, at) => field(safeText(given.inputs[at]?.name || `argument ${at + 1}`), input, `Type: ${given.inputs[at]?.type}.`))),
    description && el('p', { class: 'small' }, description),
    el('div', { class: 'row' }, main && el('button', { class: 'button main' }, main[0]), ...others.map(([name, work]) => action(name, () => work(data)))),
    result);
}

/** Asks for an ABI, then offers its functions, each with a proven answer. */
export function functionsView(session: Session, address: string): HTMLElement {
  const abi = el('textarea', { class: 'short', spellcheck: 'false', autocomplete: 'off' });
  const list = el('div', { class: 'functions' });
  const one = (given: ContractFunction) => {
    const result = el('div');
    const show = resultDisplay(result, session);
    return functionView(given, [['Ask and prove', (data) => show(async () => {
      const block = await pinnedBlock(session);
      const call = [{ to: address, data: data() }, block.number] as const;
      const answer = await session.answer('eth_call', ...call);
      const claimed = await claimOf(session, 'eth_call', ...call);
      return answerView(session, {
        lines: [
          { name: 'In words', claimed: claimInWords(claimed, readings), proven: provenInWords(answer.result, readings) },
          { name: 'Bytes', claimed: claimInWords(claimed, clipped), proven: provenInWords(answer.result, clipped), mono: true },
        ],
        level: answer.level, block, verification: await session.verification(block.number), trails: [],
      });
    })]], { result, description: !given.reads && 'This function changes something. Asked here it changes nothing: you see what it would answer.' });
  };
  /** Shows the functions that `find` returns. `whose` names the author of their names. */
  const open = async (find: () => readonly ContractFunction[] | Promise<readonly ContractFunction[]>, whose: string) => {
    try {
      const functions = await find();
      fill(list, el('p', { class: 'note warn whose' }, el('span', { class: 'badge warn' }, 'names not proven'), ` The names are the word of ${whose}. What the functions answer is proven.`), ...functions.map(one));
    } catch (error) {
      fill(list, refusalView(error));
    }
  };
  const elsewhere = el('div', { class: 'row' });
  if (session.source.kind === 'server') {
    void sourcifyAddress().then((server) => server && put(elsewhere,
      action(`Ask ${server.host} for the functions`, () => open(() => publishedFunctions(server, session.source.chainId, address), server.host))));
  }
  return el('section', { class: 'card', 'aria-label': 'Functions' }, el('h2', {}, 'Functions'),
    el('p', { class: 'description' }, 'The chain knows a contract’s bytes, not the names of its functions. Paste the ABI from its author: the names are the author’s word, the answers are proven.'),
    form({ class: 'form' }, () => open(() => functionsOf(abi.value), 'whoever wrote this ABI'), field('ABI', abi), el('div', {}, el('button', { class: 'button' }, 'Show the functions'))), elsewhere, list);
}
