// Computes the merge-mining proof of a block step by step, so that draw.ts can draw it. The light client has checked the same proof before it
// returned the block.
import { ascii, concat, equal, fromHex, lastIndexOf, reversed, toBig } from '../bytes.ts';
import { doubleSha, sha256, sha256From } from './hash.ts';
import { type Header, readHeader } from './header.ts';

/** The parts of a block that the drawing needs. */
export interface MinedBlock {
  readonly number: number;
  readonly hash: string;
  readonly rawHeader: string;
  readonly coinbase: string;
  readonly merkleProof: string;
  readonly hashForMergedMining: string;
}

/** One step up in Bitcoin's Merkle tree: hash(left, right) = parent. All three are in the byte order that is hashed. */
export interface MerkleStep {
  readonly left: Uint8Array;
  readonly right: Uint8Array;
  readonly parent: Uint8Array;
}

/** A proof with all its intermediate values. */
export interface MiningProof {
  readonly header: Header;
  readonly number: number;
  readonly claimedHash: Uint8Array;
  /** The 32 bytes that the Bitcoin coinbase must contain. */
  readonly commitment: Uint8Array;
  /** How many of them are keccak of the header; the others are fork detection data. */
  readonly keccakBytes: number;
  /** The number of bytes of the coinbase transaction that were hashed before (8 bytes), and the state of SHA-256 after them (32). */
  readonly midstate: Uint8Array;
  /** The last part of the coinbase transaction. */
  readonly tail: Uint8Array;
  /** The position of the tag in `tail`, which the commitment follows; -1 if the commitment is not there. */
  readonly tagAt: number;
  readonly coinbaseHash: Uint8Array;
  readonly steps: readonly MerkleStep[];
  /** The end of the steps, which must be the field of the Bitcoin header. */
  readonly merkleRoot: Uint8Array;
  readonly bitcoinHash: Uint8Array;
  /** The greatest hash of the Bitcoin header that is enough work. */
  readonly target: bigint;
  readonly checks: readonly Check[];
}

/** A check of the proof. */
export interface Check {
  /**
   * `work`: the hash of the Bitcoin header is below the target; `branch`: the steps end in its Merkle root; `coinbase`: the coinbase transaction
   * contains the commitment; `commitment` and `hash`: the block states the hashes that are computed from its header.
   */
  readonly name: 'work' | 'branch' | 'coinbase' | 'commitment' | 'hash';
  readonly holds: boolean;
}

/** The bytes in front of the commitment. */
export const TAG = ascii('RSKBLOCK:');
/** Bytes of the midstate. */
const MIDSTATE = 40;
/** Start and end of the Merkle root in a Bitcoin header. */
const ROOT = [36, 68] as const;
/** The number of hashes. */
const HASHES = 1n << 256n;

/** The hash for merged mining: since RSKIP-110 its last 12 bytes are fork-detection data, which only the coinbase transaction contains. */
function committed(header: Header, coinbase: Uint8Array): { commitment: Uint8Array; keccakBytes: number } {
  if (lastIndexOf(coinbase, concat(TAG, header.base)) >= 0) return { commitment: header.base, keccakBytes: 32 };
  const front = header.base.subarray(0, 20);
  const at = lastIndexOf(coinbase, concat(TAG, front));
  if (at < 0) return { commitment: header.base, keccakBytes: 32 };
  return { commitment: concat(front, coinbase.subarray(at + TAG.length + 20, at + TAG.length + 32)), keccakBytes: 20 };
}

/** The steps from a leaf up, by the hashes of its neighbours. The leaf is the first transaction, so that it is always on the left. */
function branch(leaf: Uint8Array, proof: Uint8Array): MerkleStep[] {
  const steps: MerkleStep[] = [];
  let left = leaf;
  for (let at = 0; at + 32 <= proof.length; at += 32) {
    const right = reversed(proof.subarray(at, at + 32));
    const parent = doubleSha(concat(left, right));
    steps.push({ left, right, parent });
    left = parent;
  }
  return steps;
}

/** Computes the whole proof; throws if a part is missing or malformed. */
export function prove(block: MinedBlock): MiningProof {
  const header = readHeader(fromHex(block.rawHeader));
  const coinbase = fromHex(block.coinbase);
  if (coinbase.length < MIDSTATE || header.bitcoinHeader.length !== 80) throw new Error('this block has no merge-mining proof');
  const { commitment, keccakBytes } = committed(header, coinbase);
  const [midstate, tail] = [coinbase.subarray(0, MIDSTATE), coinbase.subarray(MIDSTATE)];
  const tagAt = lastIndexOf(tail, concat(TAG, commitment));
  const coinbaseHash = sha256(sha256From(midstate.subarray(8), toBig(midstate.subarray(0, 8)), tail));
  const steps = branch(coinbaseHash, fromHex(block.merkleProof));
  const merkleRoot = steps.at(-1)?.parent ?? coinbaseHash;
  const bitcoinHash = doubleSha(header.bitcoinHeader);
  // By the rule of merged mining a difficulty below 3 counts as 3.
  const target = HASHES / (header.difficulty > 3n ? header.difficulty : 3n);
  const claimedHash = fromHex(block.hash);
  const checks: Check[] = [
    { name: 'work', holds: toBig(reversed(bitcoinHash)) <= target },
    { name: 'branch', holds: equal(merkleRoot, header.bitcoinHeader.subarray(...ROOT)) },
    { name: 'coinbase', holds: tagAt >= 0 },
    { name: 'commitment', holds: equal(commitment, fromHex(block.hashForMergedMining)) },
    { name: 'hash', holds: equal(header.hash, claimedHash) },
  ];
  return {
    header, number: block.number, claimedHash, commitment, keccakBytes, midstate, tail, tagAt, coinbaseHash, steps,
    merkleRoot, bitcoinHash, target, checks,
  };
}
