// The playground's panel to mine blocks, to let time pass, and to return to snapshots.
import { grouped, quantity } from '../bytes.ts';
import { action, el, fill } from '../dom.ts';
import type { Bench } from './bench.ts';

/** The panel. `lightHead` is the newest block of this chain that the page's light client has; `undefined` if it follows another chain. */
export function timePanel(bench: Bench, lightHead: () => number | undefined): HTMLElement {
  const snapshots = el('div', { class: 'row' });
  const height = el('strong', { id: 'height' });
  const number = async () => Number(await bench.ask('eth_blockNumber'));
  const clock = el('strong', { id: 'chain-time' });
  const time = async () => {
    const { timestamp } = (await bench.ask('eth_getBlockByNumber', 'latest', false)) as { timestamp: string };
    return `${new Date(1000 * Number(timestamp)).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  };
  const update = async () => {
    height.textContent = grouped(await number());
    clock.textContent = await time();
  };
  bench.onChange(() => void update());
  void update();

  const mine = (blocks: number) => bench.attempt(async () => {
    await bench.ask('hardhat_mine', quantity(blocks));
    bench.tell('good', blocks === 1 ? 'A block was mined' : `${blocks} blocks were mined`, `: the chain has block ${grouped(await number())} now.`);
    bench.changed();
  });
  /** Lets time pass, and mines a block that shows it. */
  const advance = (seconds: number, words: string) => bench.attempt(async () => {
    await bench.ask('evm_increaseTime', seconds);
    await bench.ask('evm_mine');
    bench.tell('good', `${words} passed at once: the chain’s newest block is of ${await time()}.`);
    bench.changed();
  });
  /** Snapshots: the id that the chain gave, and the number of the block. */
  const saved: { readonly id: unknown; readonly at: number }[] = [];
  const redraw = () => fill(snapshots, ...saved.map((snapshot) => action(`Back to block ${grouped(snapshot.at)}`, () => back(snapshot))));
  const snapshot = () => bench.attempt(async () => {
    saved.push({ id: await bench.ask('evm_snapshot'), at: await number() });
    redraw();
    bench.tell('', `A snapshot of everything at block ${grouped(await number())}. Do something, then come back to it.`);
  });
  const back = ({ id, at }: (typeof saved)[number]) => bench.attempt(async () => {
    const before = await number();
    if (!(await bench.ask('evm_revert', id))) throw new Error('this snapshot is gone');
    // Later snapshots are of blocks that no longer exist.
    saved.splice(saved.findIndex((other) => other.id === id) + 1);
    redraw();
    bench.tell('good', `Everything is as it was at block ${grouped(at)}.`);
    const seen = lightHead();
    // The light client has the longer branch until the new one is longer still.
    const behind = seen === undefined ? 0 : Math.max(before, seen) - at;
    if (behind > 0) {
      bench.tell('', `The light client above keeps the longer branch, because a node that forgets blocks could be lying. ${grouped(behind + 1)} new blocks convince it. `, action(`Mine ${behind + 1}`, () => mine(behind + 1)));
    }
    bench.changed();
  });
  return el('div', {},
    el('p', {}, 'The chain has block ', height, ' of ', clock, '. It mines one for each transaction.'),
    el('div', { class: 'row' }, action('Mine a block', () => mine(1)), action('Mine 10', () => mine(10)), action('Take a snapshot', snapshot)),
    el('div', { class: 'row' }, action('One hour later', () => advance(3_600, 'An hour')), action('One day later', () => advance(86_400, 'A day'))),
    snapshots);
}
