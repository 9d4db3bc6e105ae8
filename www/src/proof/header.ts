// A Rootstock header taken apart: its fields, its hash, and the hash that miners commit to (RSKIP-92, 110, 351, 535).
import { concat, toBig } from '../bytes.ts';
import { keccak } from './hash.ts';
import { decodeList, encodeList } from './rlp.ts';

/** A field of the encoded header. */
export interface HeaderField {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly description: string;
}

export interface Header {
  readonly fields: readonly HeaderField[];
  readonly hash: Uint8Array;
  /** Keccak of the header without its mining fields, before the fork detection data replaces its end. */
  readonly base: Uint8Array;
  readonly bitcoinHeader: Uint8Array;
  readonly difficulty: bigint;
}

const NAMES: readonly (readonly [string, string])[] = [
  ['parent hash', 'The hash of the block before. This is what makes a chain of the blocks: change an old block, and every later one changes.'],
  ['uncles hash', 'Commits to blocks that were mined at the same height and lost. Their work counts, too.'],
  ['miner', 'The address that mined this block.'],
  ['state root', 'Commits to every account, balance and storage cell after this block. Balances below are proven against it.'],
  ['transactions root', 'Commits to all transactions of this block, in their order.'],
  ['receipts root', 'Commits to what the transactions did: gas, success, logs. Logs below are proven against it.'],
  ['logs bloom', 'A coarse index of all logs. It shows quickly that a block has no log of a contract.'],
  ['difficulty', 'How much work this block had to show. The header at the top must have a hash below 2²⁵⁶ divided by this.'],
  ['number', 'The height of the block.'],
  ['gas limit', 'The most gas that its transactions may use.'],
  ['gas used', 'The gas that they used.'],
  ['time', 'When the block was made, in seconds since 1970.'],
  ['extra data', 'Free text of the miner.'],
  ['fees', 'The fees that its transactions paid.'],
  ['minimum gas price', 'The lowest price at which miners take transactions.'],
  ['uncle count', 'The number of uncles.'],
  ['merge-mining root', 'Reserved for mining several chains at once; empty today (RSKIP-110).'],
];
const VERSION: readonly [string, string] = ['version', 'The version of the header’s format.'];
const EDGES: readonly [string, string] = ['parallel lists', 'Which transactions may run at the same time (RSKIP-144).'];
const EVENT: readonly [string, string] = ['base event', 'Reserved for events of the two-way peg with Bitcoin (RSKIP-535).'];
/** The header in Bitcoin's form, which only some networks' miners take from Bitcoin. */
export const TOP = 'header at the top';
const BITCOIN: readonly [string, string] = [TOP, 'The 80 bytes at the top of this drawing. The block’s own hash covers them.'];

/** The fields of each form, by the number of items in `rsk_getRawBlockHeader...`. */
const FORMS = new Map<number, { readonly version: number; readonly names: readonly (readonly [string, string])[] }>([
  [17, { version: 0, names: [...NAMES.slice(0, 16), BITCOIN] }],
  [18, { version: 0, names: [...NAMES, BITCOIN] }],
  [20, { version: 1, names: [...NAMES, VERSION, EDGES, BITCOIN] }],
  [21, { version: 2, names: [...NAMES, VERSION, EDGES, EVENT, BITCOIN] }],
]);

const BLOOM = 6;
const DIFFICULTY = 7;
const MERGE_MINING_ROOT = 16;
/** Fields of every form: those after them differ. */
const COMMON = 17;

/** The header's items as they are hashed: from version 1 on, the bloom stands for all fields that were added since. */
function compressed(items: readonly Uint8Array[], version: number): Uint8Array[] {
  const own = items.slice(0, -1);
  if (version === 0) return own;
  const [bloom = new Uint8Array(), edges = new Uint8Array(), event] = [items[BLOOM], items[COMMON + 1], version === 2 ? items[COMMON + 2] : undefined];
  const extension = keccak(encodeList(event ? [keccak(bloom), event, edges] : [keccak(bloom), edges]));
  return [...own.slice(0, BLOOM), encodeList([Uint8Array.of(version), extension]), ...own.slice(BLOOM + 1, COMMON)];
}

/** Takes a header apart; throws for bytes that are no header of a block since 729,000 on the main network. */
export function readHeader(raw: Uint8Array): Header {
  const items = decodeList(raw);
  const form = FORMS.get(items.length);
  if (!form) throw new Error(`a header with ${items.length} fields cannot be drawn; blocks before 729,000 of the main network had another form`);
  const bitcoinHeader = items.at(-1) ?? new Uint8Array();
  const plain = compressed(items, form.version);
  const own = keccak(encodeList(plain));
  const merged = form.names.length > 17 ? items[MERGE_MINING_ROOT] : undefined;
  return {
    fields: items.map((bytes, index) => ({ bytes, name: form.names[index]?.[0] ?? '', description: form.names[index]?.[1] ?? '' })),
    hash: keccak(encodeList([...plain, bitcoinHeader])),
    base: merged?.length === 20 ? keccak(concat(own.subarray(0, 20), merged)) : own,
    bitcoinHeader,
    difficulty: toBig(items[DIFFICULTY] ?? new Uint8Array()),
  };
}
