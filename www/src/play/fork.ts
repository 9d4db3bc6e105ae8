// Starts a chain of the playground that begins on a block of the server's network. The script is loaded when it is used. It gets the functions of
// other files as `Tools`, because a file that two scripts import becomes a script of its own, which the first screen would load.
import type { ChainProvider } from '../../../pkg/dev.js';
import type { Block, Session } from '../chain/session.ts';
import type { Tools } from '../views/playground.ts';
import type { Bench } from './bench.ts';

/** Shows a chain, the note about its proof (`standing`), and the form that adds contracts of its network (`find`). */
type Show = (chain: ChainProvider, standing: HTMLElement, find: (bench: Bench) => HTMLElement) => Promise<void>;

/** The address of the node that a visitor names. The page may ask only its own host: its server, or another path there. */
function nodeAt({ InputError, serverAddress }: Tools, given: string): URL {
  if (given === '') return serverAddress();
  const url = URL.canParse(given, location.href) ? new URL(given, location.href) : undefined;
  if (url?.origin !== location.origin) throw new InputError('this page may ask its own host only; `npx rootlight dev --fork URL` begins on a block of any node');
  return url;
}

/** A form that adds a contract of the network, which was not deployed here, to the list of contracts. */
function findForm({ el, field, form, InputError, interfaceOf, short, toAddress }: Tools, bench: Bench): HTMLElement {
  const address = el('input', { autocomplete: 'off', spellcheck: 'false' });
  const abi = el('textarea', { class: 'short', spellcheck: 'false', autocomplete: 'off' });
  const find = () => bench.attempt(async () => {
    const at = toAddress(address.value);
    if ((await bench.ask('eth_getCode', at, 'latest')) === '0x') throw new InputError('there is no contract at this address');
    bench.contracts.unshift({ name: 'Contract', address: at, functions: abi.value.trim() === '' ? [] : interfaceOf(abi.value).functions });
    bench.changed();
    bench.tell('good', `The contract at ${short(at, 4, 4)} can be called.`);
  });
  return form({ class: 'form' }, find,
    field('Address of a contract of the network', address),
    field('The contract’s ABI', abi, 'Its author’s word. Without it, calls are written by hand.'),
    el('div', {}, el('button', { class: 'button' }, 'Use it')));
}

/** A note about the block on which a chain begins, and whether its state is proven. */
function standingOf({ el, grouped, networkName }: Tools, number: number, chainId: number, unproven: 'refuse' | 'trust'): HTMLElement {
  const [kind, badge, words] = unproven === 'refuse'
    ? ['good', 'proven', 'What the chain reads of the network is proven from that block on.']
    : ['warn', 'unproven', 'Balances, code and storage of the network are what the node says: nothing proves them.'];
  return el('p', { class: `note ${kind}`, id: 'fork', role: 'status', tabindex: '-1' }, el('span', { class: `badge ${kind}` }, badge),
    ` The chain begins after block ${grouped(number)} of ${networkName(chainId)}, which this tab has proven. ${words} Nothing that you do here leaves this tab.`);
}

/** Starts a chain on the newest block that the page's light client has proven. `state` shows the progress, or why the start failed. */
async function begin(tools: Tools, session: Session, given: string, state: HTMLElement, show: Show, unproven: 'refuse' | 'trust' = 'refuse'): Promise<void> {
  const { action, el, fill, forkOf, grouped, ownPart, quantity, reasonOf } = tools;
  try {
    const url = nodeAt(tools, given);
    const { head: number, source } = session;
    fill(state, `Takes block ${grouped(number)}, and reads what every block reads…`);
    const { hash } = (await session.request('eth_getBlockByNumber', quantity(number), false)) as Block;
    const chain = await forkOf(url, { number, hash }, unproven);
    // The page may show another chain by now.
    if (!state.isConnected) return chain.close();
    await show(chain, standingOf(tools, number, source.chainId, unproven), (bench) => findForm(tools, bench));
  } catch (error) {
    const reason = reasonOf(error);
    if (!/proves no state/.test(ownPart(reason))) return fill(state, el('span', { class: 'badge bad' }, 'refused'), ` ${reason}`);
    fill(state, el('span', { class: 'badge warn' }, 'refused'), ' The node proves no balances, code and storage, so the chain was not started. ',
      action('Begin without proofs', () => begin(tools, session, given, state, show, 'trust')));
  }
}

/** Puts the form that starts such a chain into a card. */
export function choose(tools: Tools, session: Session, card: HTMLElement, show: Show): void {
  const { el, field, form } = tools;
  const node = el('input', { autocomplete: 'off', spellcheck: 'false', inputmode: 'url' });
  const state = el('p', { class: 'description', role: 'status' });
  card.querySelector('form')?.remove();
  card.append(form({ class: 'form' }, () => begin(tools, session, node.value.trim(), state, show),
    field('Node', node, 'Empty: this server, the only host that this page may ask. The chain begins after the newest block that this tab has proven, with all accounts and contracts of the network.'),
    el('div', { class: 'row' }, el('button', { class: 'button' }, 'Begin')), state));
  node.focus();
}
