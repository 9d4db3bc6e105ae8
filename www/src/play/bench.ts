// The state that the parts of the playground share: the development chain, its accounts, its contracts, and the list of events.
import { grouped, quantity } from '../bytes.ts';
import { type Child, el } from '../dom.ts';
import type { Source } from '../chain/source.ts';
import { type ContractFunction, functionsOf } from '../contracts/interface.ts';
import { TOKEN_ABI } from '../contracts/samples.ts';
import { refused } from '../contracts/refused.ts';
import { reverts } from '../words.ts';

/** A receipt as the chain returns it. */
export interface Receipt {
  readonly status: string;
  readonly blockNumber: string;
  readonly contractAddress: string | null;
  readonly gasUsed: string;
  readonly transactionHash: string;
  readonly logs: readonly unknown[];
  /** Why the transaction reverted, in words. */
  readonly reason?: string | undefined;
}

/** A contract of the playground. */
export interface Deployed {
  readonly name: string;
  readonly address: string;
  /** The functions that its ABI names; empty if there is none. */
  readonly functions: readonly ContractFunction[];
}

/** Gas of each transaction: enough for the samples, and below a block's limit. */
const GAS = 3_000_000;

/** Most lines of the list of events. */
const MOST_LINES = 30;

/** A chain of the playground. */
export class Bench {
  readonly source: Pick<Source, 'chain' | 'token'>;
  /** The list of events. */
  readonly log = el('ol', { class: 'log', 'aria-live': 'polite', 'aria-label': 'What happened' });
  accounts: readonly string[] = [];
  readonly contracts: Deployed[] = [];
  private readonly listeners: (() => void)[] = [];

  constructor(source: Bench['source']) {
    this.source = source;
    if (source.token) this.contracts.push({ name: 'Rootlight Demo (token)', address: source.token, functions: functionsOf(TOKEN_ABI) });
  }

  /** Calls the chain. */
  ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    const { chain } = this.source;
    return chain ? chain.request({ method, params }) : Promise.reject(new Error('there is no chain in this tab'));
  }

  /** Sends a transaction and waits until it is mined, which is at once. */
  async send(transaction: object): Promise<Receipt> {
    const sent = { gas: quantity(GAS), ...transaction };
    const hash = await this.ask('eth_sendTransaction', sent).catch((error: unknown) => (reverts(error) ? this.newest() : Promise.reject(error)));
    const receipt = (await this.ask('eth_getTransactionReceipt', hash)) as Receipt | null;
    if (!receipt) throw new Error('the transaction waits: mine a block');
    this.changed();
    if (receipt.status === '0x1') return receipt;
    // A receipt does not say why a transaction reverted. A call with the same data on the state before its block does.
    const before = quantity(Number(receipt.blockNumber) - 1);
    return { ...receipt, reason: await this.ask('eth_call', sent, before).then(() => undefined, refused) };
  }

  /**
   * The transaction of the newest block. A chain that reports a revert as an error has mined the transaction all the same, but does not return
   * its hash.
   */
  private async newest(): Promise<unknown> {
    const block = (await this.ask('eth_getBlockByNumber', 'latest', false)) as { transactions: readonly string[] };
    return block.transactions[0];
  }

  /** Calls `listener` whenever the chain may have changed. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Notifies the listeners. */
  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Adds a line to the list, newest first. */
  tell(kind: 'good' | 'bad' | '', ...line: Child[]): void {
    const mark = kind === 'bad' ? '✗' : kind === 'good' ? '✓' : '·';
    this.log.prepend(el('li', {}, el('span', { class: `badge ${kind}` }, mark), ' ', ...line));
    while (this.log.children.length > MOST_LINES) this.log.lastElementChild?.remove();
  }

  /** Runs an action of the visitor; its error becomes a line of the list. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.tell('bad', refused(error));
    }
  }

  /** Whether a transaction succeeded, in words. */
  outcome(receipt: Receipt): string {
    return receipt.status === '0x1' ? `in block ${Number(receipt.blockNumber)}, ${grouped(Number(receipt.gasUsed))} gas` : `was mined, but changed nothing except the fee: ${receipt.reason ?? 'it reverted'}`;
  }
}

/** Replaces the options of a select, each with its value and its name, and keeps the choice. */
export function options(list: HTMLSelectElement, entries: readonly (readonly [value: string, name: string])[]): void {
  const chosen = list.value;
  list.replaceChildren(...entries.map(([value, name]) => el('option', { value, selected: value === chosen }, name)));
}
