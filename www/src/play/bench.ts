// State that the parts of the playground share: the chain, its accounts, its contracts, and the list of events.
import { grouped, quantity } from '../bytes.ts';
import { type Child, el } from '../dom.ts';
import type { Source } from '../chain/source.ts';
import { type ContractFunction, functionsOf } from '../contracts/interface.ts';
import { TOKEN_ABI } from '../contracts/samples.ts';
import { refused } from '../contracts/refused.ts';
import { reverts } from '../words.ts';

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

export interface Deployed {
  readonly name: string;
  readonly address: string;
  /** The functions that its ABI names; empty if there is none. */
  readonly functions: readonly ContractFunction[];
}

/** Gas of each transaction: enough for the samples, and below a block's limit. */
const GAS = 3_000_000;

/** Lines that the list keeps. */
const LINES = 30;

export class Bench {
  readonly source: Pick<Source, 'chain' | 'token'>;
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
    // A receipt does not say why. The same call on the state before does.
    const before = quantity(Number(receipt.blockNumber) - 1);
    return { ...receipt, reason: await this.ask('eth_call', sent, before).then(() => undefined, refused) };
  }

  /** The transaction of the newest block: a chain that reports reverts mines the transaction, and gives no hash. */
  private async newest(): Promise<unknown> {
    const block = (await this.ask('eth_getBlockByNumber', 'latest', false)) as { transactions: readonly string[] };
    return block.transactions[0];
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Adds a line to the list, newest first. */
  tell(kind: 'good' | 'bad' | '', ...line: Child[]): void {
    const mark = kind === 'bad' ? '✗' : kind === 'good' ? '✓' : '·';
    this.log.prepend(el('li', {}, el('span', { class: `badge ${kind}` }, mark), ' ', ...line));
    while (this.log.children.length > LINES) this.log.lastElementChild?.remove();
  }

  /** Runs work of a visitor; its error becomes a line. */
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

/** Options of a select. */
export function options(list: HTMLSelectElement, entries: readonly (readonly [string, string])[]): void {
  const chosen = list.value;
  list.replaceChildren(...entries.map(([value, name]) => el('option', { value, selected: value === chosen }, name)));
}
