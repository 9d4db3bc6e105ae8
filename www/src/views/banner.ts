// The banner about a source that cannot be used: what is wrong, when the page asks again, and what a visitor can do. Also the note that the chain is
// one for practice.
import { keepKey } from '../chain/key.ts';
import { type Trouble, type TroubleKind } from '../chain/trouble.ts';
import { grouped, safeText } from '../bytes.ts';
import { action, el, field, fill, form } from '../dom.ts';

/** The actions of the banner's buttons. */
export interface Ways {
  /** Asks the server again. */
  readonly again: () => void;
  /** Starts a practice chain in this tab. */
  readonly practise: () => void;
}

/** Seconds before the server is asked again, after the first, second, ... failure. */
const PAUSES = [5, 10, 20, 40, 60];
/** Seconds before a server that synchronizes is asked again. */
const SYNCING_PAUSE = 3;
/** Troubles that waiting does not end, so that the page does not ask again by itself. */
const LASTING: ReadonlySet<TroubleKind> = new Set<TroubleKind>(['key', 'refused', 'absent']);

/** The trouble in words: what is wrong, and what to do. */
function troubleWords({ kind, message, progress }: Trouble, host: string): readonly [what: string, next: string] {
  const detail = safeText(message).slice(0, 300);
  switch (kind) {
    case 'key': return [`${host} asks for an API key (${detail}).`, 'Enter the key that its operator gave you. Until then nothing of its chain is shown.'];
    case 'refused': return [`${host} refuses the API key (${detail}).`, 'Look for a mistyped letter, or ask the operator for another key.'];
    case 'down': return [`${host} does not answer: ${detail}.`, 'The node may be down, or the way to it is cut.'];
    case 'hanging': return [`${host} takes questions and gives no answer: ${detail}.`, 'The node may be too busy.'];
    case 'network': return [`${host} serves chain ${detail}, which is no network of Rootstock.`, 'This page proves Rootstock (30), its testnet (31), devnet (32) and development chains (33).'];
    case 'absent': return [`There is no node at ${host} (${detail}).`, 'The page came from plain files. A practice chain in this tab shows how everything works.'];
    case 'unproven': return [`${host} answers, and proves nothing of it.`, `Nothing unproven is shown. The reason: ${detail}.`];
    case 'syncing': {
      const { current = 0, highest = 0, secondsLeft } = progress ?? {};
      const left = secondsLeft === undefined ? '' : `, about ${grouped(Math.ceil(secondsLeft))} s left`;
      return [`${host} is synchronizing: ${highest === 0 ? 'it has not begun to count' : `block ${grouped(current)} of ${grouped(highest)}${left}`}.`, 'The page follows as soon as the node is ready.'];
    }
  }
}

/** The form for an API key. */
function keyForm({ again }: Ways): HTMLElement {
  const input = el('input', { autocomplete: 'off', spellcheck: 'false', required: true, name: 'key' });
  const connect = async () => {
    if (input.value.trim() === '') return input.focus();
    keepKey(input.value);
    again();
  };
  return form({ class: 'key-form' }, connect, field('API key', input), el('button', { class: 'button main' }, 'Connect'));
}

/** Counts down to the next attempt. Returns the function that stops the countdown. */
function countdown(shown: HTMLElement, seconds: number, again: () => void): () => void {
  let left = seconds;
  const show = () => {
    shown.textContent = `The page asks again in ${left} s.`;
  };
  show();
  const clock = setInterval(() => {
    left -= 1;
    if (left > 0) return show();
    clearInterval(clock);
    shown.textContent = 'Asking again…';
    again();
  }, 1000);
  return () => clearInterval(clock);
}

/** Shows what is wrong with the server. `failures` is how often it has failed. Returns the function that stops the countdown to the next attempt. */
export function troubleView(root: HTMLElement, trouble: Trouble, failures: number, ways: Ways): () => void {
  const [what, next] = troubleWords(trouble, location.host || 'this address');
  const wants = trouble.kind === 'key' || trouble.kind === 'refused';
  const shown = el('p', { class: 'small', 'aria-live': 'off' });
  const { progress } = trouble;
  const bar = progress && progress.highest > 0
    && el('progress', { max: String(progress.highest), value: String(progress.current), 'aria-label': 'Blocks that the node has checked' });
  root.dataset['trouble'] = trouble.kind;
  fill(root, el('div', { class: `banner ${trouble.kind === 'unproven' || trouble.kind === 'network' ? 'bad' : 'warn'}` },
    el('p', {}, el('strong', {}, what), ' ', next), bar,
    wants && keyForm(ways), shown,
    el('div', { class: 'row' }, trouble.kind !== 'key' && action('Try now', ways.again), action('Use a practice chain in this tab', ways.practise))));
  if (LASTING.has(trouble.kind)) return () => {};
  const pause = trouble.kind === 'syncing' ? SYNCING_PAUSE : PAUSES[Math.min(failures, PAUSES.length) - 1] ?? SYNCING_PAUSE;
  return countdown(shown, pause, ways.again);
}

/** Says that the chain is one for practice, by the visitor's own choice. */
export function practiceView(root: HTMLElement, again: () => void): void {
  root.dataset['trouble'] = 'none';
  const back = /^https?:$/.test(location.protocol) && action(`Ask ${location.host} instead`, again);
  fill(root, el('div', { class: 'banner practice' },
    el('p', {}, el('strong', {}, 'This is a practice chain in this tab, not Rootstock.'), ' You chose it. Its coins are worth nothing, and its work cost nothing.'),
    back && el('div', { class: 'row' }, back)));
}
