// Decodes a Rootstock header: its fields with explanations, its hash, and the hash that miners commit to (RSKIP-92, 110, 177, 351, 535).
import { concat, toBig } from '../bytes.ts';
import { keccak } from './hash.ts';
import { decodeList, encodeList } from './rlp.ts';

/** A field of the encoded header. */
export interface HeaderField {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly description: string;
}

/** A decoded header. */
export interface Header {
  readonly fields: readonly HeaderField[];
  readonly hash: Uint8Array;
  /** Keccak-256 of the header without its mining fields. Fork-detection data replaces the end of it in the hash for merged mining. */
  readonly base: Uint8Array;
  /** The header in Bitcoin's form that has the work, 80 bytes. */
  readonly bitcoinHeader: Uint8Array;
  readonly difficulty: bigint;
}

/** The name and the explanation of each field, in the order of the encoded header. */
const NAMES: readonly (readonly [name: string, description: string])[] = [
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
  ['merge-mining root', 'Reserved for mining several chains at once; empty today (RSKIP-177).'],
];
/** Fields that later forms of the header have after those. */
const VERSION: readonly [name: string, description: string] = ['version', 'The version of the header’s format.'];
const EDGES: readonly [name: string, description: string] = ['parallel lists', 'Which transactions may run at the same time (RSKIP-144).'];
const EVENT: readonly [name: string, description: string] = ['base event', 'Reserved for events of the two-way peg with Bitcoin (RSKIP-535).'];
/** The name of the field with the header in Bitcoin's form. Only on some networks it is a header of Bitcoin's miners. */
export const TOP = 'header at the top';
const BITCOIN: readonly [name: string, description: string] = [TOP, 'The 80 bytes at the top of this drawing. The block’s own hash covers them.'];

/** The fields of each form, by the number of items in `rsk_getRawBlockHeader...`. */
const FORMS = new Map<number, { readonly version: number; readonly names: readonly (readonly [name: string, description: string])[] }>([
  [17, { version: 0, names: [...NAMES.slice(0, 16), BITCOIN] }],
  [18, { version: 0, names: [...NAMES, BITCOIN] }],
  [20, { version: 1, names: [...NAMES, VERSION, EDGES, BITCOIN] }],
  [21, { version: 2, names: [...NAMES, VERSION, EDGES, EVENT, BITCOIN] }],
]);

/** Positions of fields. */
const BLOOM = 6;
const DIFFICULTY = 7;
const MERGE_MINING_ROOT = 16;
/** Number of fields before those in which the versions of the header differ. */
const COMMON = 17;

/**
 * The header's items as they are hashed, without the header in Bitcoin's form. From version 1 on, one item with the version and a hash takes the
 * place of the bloom; the hash covers the bloom and all fields that were added since (RSKIP-351).
 */
function hashedItems(items: readonly Uint8Array[], version: number): Uint8Array[] {
  const own = items.slice(0, -1);
  if (version === 0) return own;
  const [bloom = new Uint8Array(), edges = new Uint8Array(), event] = [items[BLOOM], items[COMMON + 1], version === 2 ? items[COMMON + 2] : undefined];
  const extension = keccak(encodeList(event ? [keccak(bloom), event, edges] : [keccak(bloom), edges]));
  return [...own.slice(0, BLOOM), encodeList([Uint8Array.of(version), extension]), ...own.slice(BLOOM + 1, COMMON)];
}

/** Decodes a header; throws for bytes that are none. Headers below block 729,000 of the main network had another form, and throw too. */
export function readHeader(raw: Uint8Array): Header {
  const items = decodeList(raw);
  const form = FORMS.get(items.length);
  if (!form) throw new Error(`a header with ${items.length} fields cannot be drawn; blocks before 729,000 of the main network had another form`);
  const bitcoinHeader = items.at(-1) ?? new Uint8Array();
  const plain = hashedItems(items, form.version);
  const own = keccak(encodeList(plain));
  // The root of universal merged mining (RSKIP-177, RSKIP-UMM in the reference node), empty or 20 bytes; the form with 17 items does not have it.
  const merged = form.names.length > 17 ? items[MERGE_MINING_ROOT] : undefined;
  return {
    fields: items.map((bytes, index) => ({ bytes, name: form.names[index]?.[0] ?? '', description: form.names[index]?.[1] ?? '' })),
    hash: keccak(encodeList([...plain, bitcoinHeader])),
    // A root is hashed together with the first 20 bytes of the header's hash.
    base: merged?.length === 20 ? keccak(concat(own.subarray(0, 20), merged)) : own,
    bitcoinHeader,
    difficulty: toBig(items[DIFFICULTY] ?? new Uint8Array()),
  };
}
