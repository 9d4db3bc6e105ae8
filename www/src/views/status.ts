// The status line about the chain: its newest block, honest sources, the start of the chain, and the cost of a forgery. Below it are the upstreams.
import type { SyncProgress } from '../../../pkg/index.js';
import type { Session, Verification } from '../chain/session.ts';
import { networkOf } from '../chain/networks.ts';
import { progressOf, type Source } from '../chain/source.ts';
import { ago, fromHex, grouped, quantity, reversed, toBig } from '../bytes.ts';
import { action, el, fill } from '../dom.ts';
import { VERDICTS, type Verdict } from '../words.ts';
import { isTrusted, levelBadge, verdictBadge } from './answer.ts';
import { honestyViews, kindOf, sourcesView } from './honesty.ts';

/** Milliseconds without any progress after which the page says so. */
const SILENCE_TIMEOUT = 12_000;

/** Milliseconds between two checks of the state of the upstream. */
const CHECK_INTERVAL = 5_000;
/** Number of checks from one question about the upstream's network to the next. */
const CHECKS_PER_NETWORK = 4;

/** The status line, as main.ts uses it. */
export interface StatusView {
  /** Shows the progress of the first synchronization. */
  progress(progress: SyncProgress): void;
  /** Resolves when the data of the newest block is shown, or could not be fetched; a check every few seconds fetches it again. */
  ready(session: Session): Promise<void>;
}

/** How the status line makes the page change its source. */
export interface Change {
  /** The action of the button that starts a practice chain in this tab. */
  readonly practise: () => void;
  /** Called when the upstream serves another network than before. */
  readonly moved: () => void;
}

/** The verdicts that the explanation of the labels lists. */
const SHOWN: readonly Verdict[] = ['proven', 'lie', 'unprovable', 'input', 'reverted'];

/** The explanation of the page's labels, folded. */
function labels(): HTMLElement {
  return el('details', { class: 'levels' }, el('summary', {}, 'What do the labels mean?'),
    el('dl', {}, ...SHOWN.flatMap((verdict) => [el('dt', {}, verdictBadge(verdict)), el('dd', {}, VERDICTS[verdict].description)]),
      el('dt', {}, el('span', { class: 'badge good' }, 'lie refused')),
      el('dd', {}, 'A node lied, and no other node proved the true answer, so that none is shown.'),
      el('dt', {}, el('span', { class: 'badge warn' }, 'trusted')),
      el('dd', {}, 'The block where the chain starts here. Nobody proved it to the page: everything above it is proven, if this block is right.'),
      el('dt', {}, el('span', { class: 'badge' }, 'depth')),
      el('dd', {}, 'How many blocks stand on top. Each adds work that a liar would have to redo; exchanges wait for a dozen or more.')));
}

/** The start of the chain, in a few words. */
function restsOn(verification: Verification | null, isMined: boolean): string {
  const began = verification?.began;
  if (!began) return 'the start of the chain';
  if (began.kind === 'checkpoint' || began.kind === 'upstream') return began.number === 0 ? 'block 0, which is trusted' : `block ${grouped(began.number)}, which is trusted`;
  return isMined ? 'recent headers that Bitcoin miners worked on' : 'the work of recent headers';
}

/**
 * The cost of a forgery, as a number of Bitcoin blocks of the difficulty that the Bitcoin header of the newest block states; `undefined` if it is not
 * known. `attackCost` is the least work of a forgery, as Rootstock's difficulty.
 */
export function forgery(attackCost: string | null, bitcoinHeader: string): string | undefined {
  if (attackCost === null || !/^0x[0-9a-f]{160}$/.test(bitcoinHeader)) return undefined;
  const bits = Number(toBig(reversed(fromHex(bitcoinHeader).subarray(72, 76))));
  // Bitcoin's compact form of a target: 23 bits of the number, and in the highest byte its length in bytes.
  const target = BigInt(bits & 0x7f_ffff) << BigInt(Math.max(0, 8 * ((bits >>> 24) - 3)));
  // A hash below the target takes 2^256 / (target + 1) tries; computed with two decimals.
  const blocks = Number((BigInt(attackCost) * 100n * (target + 1n)) >> 256n) / 100;
  return `the work of ${blocks < 10 ? blocks.toFixed(1) : grouped(Math.round(blocks))} Bitcoin blocks`;
}

/** The text before the first header. */
const asking = (name: string): string => `Asking ${name} for headers…`;

/** The progress in words. Before the first header no number of blocks is known. */
export function progressWords({ currentBlock, highestBlock, secondsLeft }: SyncProgress, name: string): string {
  if (highestBlock === 0) return asking(name);
  const left = secondsLeft === undefined ? '' : `, about ${grouped(Math.ceil(secondsLeft))} s left`;
  return `Block ${grouped(currentBlock)} of ${grouped(highestBlock)} checked${left}.`;
}

/** Shows the status line of a source. */
export function statusView(root: HTMLElement, source: Source, change: Change): StatusView {
  const network = networkOf(source.chainId);
  const name = source.kind === 'tab' ? 'practice chain' : network?.name ?? '';
  const bar = el('progress', { max: '1', value: '0', 'aria-label': 'Blocks verified' });
  const note = el('p', { class: 'small', 'aria-live': 'polite' }, asking(source.name));
  const strip = el('div', { class: 'strip-line' }, el('span', { class: 'badge network' }, name));
  const table = el('div');
  const title = el('summary', {}, 'The node, as this page sees it');
  const below = el('div', { class: 'below' });
  fill(root, strip, bar, note, below);
  // A lack of progress is shown as well: a node may be down, or send headers that prove nothing.
  const waiting = setTimeout(() => {
    note.textContent = `Still no proven header from ${source.name}: it does not answer, or what it sends proves nothing.`;
  }, SILENCE_TIMEOUT);
  /** The data that is shown. The same data is not shown again, because screen readers would read it again. */
  let shown = '';
  /** The time of the newest block, in seconds since 1970. */
  let time = 0;
  let checks = 0;
  /** The upstreams of the server, as it last stated them. */
  let { served } = source;

  /** Fetches the data of the status line, and shows it if it has changed. */
  async function refresh(session: Session): Promise<void> {
    if (session.isClosed) return;
    const { head } = session;
    const at = quantity(head);
    const [verification, reports, lies, header] = await Promise.all([session.verification(at), session.upstreams(), session.lies(), session.header(head)]);
    /** Why an upstream is not asked at present; null while all answer. */
    const silence = reports.find(({ resting }) => resting !== null)?.resting ?? null;
    const data = JSON.stringify([head, verification?.level, reports.map(({ announced, stateProofs }) => [announced, stateProofs]), lies, silence, session.lacksState, served]);
    // A newer block has a refresh of its own.
    if (session.isClosed || head !== session.head) return;
    time = head === 0 ? 0 : header?.time ?? 0;
    if (data === shown) return tick();
    shown = data;
    const level = levelBadge(undefined, verification);
    level.id = 'level';
    const cost = network?.isMined ? forgery(verification?.attackCost ?? null, header?.bitcoin ?? '') : 'next to nothing';
    const part = (...children: (Node | string)[]) => el('span', {}, ...children);
    fill(strip, el('span', { class: 'badge network' }, name),
      part(el('b', { id: 'head' }, `#${grouped(head)}`), ' newest block shown', time > 0 ? ', ' : ' ', time > 0 ? el('time', { id: 'age' }) : '', ' ', level),
      ...honestyViews({ name: source.name, served, lies, isSilent: silence !== null, isTrusted: isTrusted(verification), isOwn: source.kind === 'tab' }),
      part('checked from ', el('b', { id: 'rests' }, restsOn(verification, network?.isMined ?? false))),
      cost ? part('a false chain costs ', el('b', { id: 'cost' }, cost), network?.isMined ? '' : ': its work is not Bitcoin’s') : '');
    tick();
    bar.hidden = true;
    fill(table, sourcesView(reports, served, source.name, lies));
    title.textContent = `The ${kindOf(served)}, as this page sees it`;
    root.dataset['node'] = silence === null ? 'answers' : 'silent';
    note.textContent = silence !== null
      ? `${source.name} gives nothing new for now: ${silence}. What was proven stays proven, and the page goes on asking.`
      : session.lacksState ? `${source.name} cannot prove state: blocks, transactions, receipts and logs are proven, balances and calls are not. ${served.length > 0 ? 'An upstream that proves state, such as `rootlight follow`, makes it able to.' : 'A node such as `rootlight follow` proves them.'}` : '';
  }

  /** Updates the age of the newest block. */
  const tick = () => {
    const age = root.querySelector('#age');
    if (age) age.textContent = ago(time);
  };

  /** Checks the upstream: its state, and at times its network. */
  async function check(session: Session): Promise<void> {
    checks += 1;
    if (source.kind === 'server' && checks % CHECKS_PER_NETWORK === 0) {
      const chainId = await session.uncheckedAnswer('eth_chainId').catch(() => undefined);
      if (typeof chainId === 'string' && Number(chainId) !== source.chainId && !session.isClosed) return change.moved();
    }
    served = await session.served();
    await refresh(session);
  }

  return {
    progress(progress) {
      clearTimeout(waiting);
      bar.value = progressOf(progress);
      note.textContent = progressWords(progress, source.name);
    },
    ready(session) {
      const again = () => refresh(session).catch(() => {});
      session.onHead(() => void again());
      session.onChange(() => void again());
      clearTimeout(waiting);
      fill(below, el('details', { class: 'levels' }, title,
        el('p', { class: 'description' }, network?.work), el('p', { class: 'description' }, `Trusted without proof: ${source.trusts}.`), table),
      // A visitor with a development chain already gains nothing by one for practice.
      labels(), source.kind === 'server' && network?.option !== 'regtest' && action('Use a practice chain in this tab', change.practise));
      const clock = setInterval(() => {
        if (session.isClosed) clearInterval(clock);
        else void check(session).catch(() => {});
      }, CHECK_INTERVAL);
      return again();
    },
  };
}
