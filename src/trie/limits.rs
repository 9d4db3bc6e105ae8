//! Limits on untrusted nodes and proofs. Each limit is well above the sizes that occur on Rootstock, so none
//! refuses an honest proof.

/// Longest key in bytes. The longest state key (of a storage slot) has 74 bytes, an index key at most 9.
pub const MAX_KEY_BYTES: usize = 128;

/// Longest shared path of one node in bits: that of a whole key.
pub const MAX_PATH_BITS: usize = MAX_KEY_BYTES * 8;

/// Longest serialization of a terminal child that its parent embeds (RSKIP-107).
pub const MAX_EMBEDDED_BYTES: usize = 44;

/// Longest value that a node contains. Longer ones are replaced by their hash and length (RSKIP-107).
pub const MAX_INLINE_VALUE: usize = 32;

/// Longest serialization of one node: flags, path length code (1 + 3) and path, two embedded children with
/// their length bytes, childrenSize varint, value hash and its three length bytes.
pub const MAX_NODE_BYTES: usize = 1 + 4 + MAX_KEY_BYTES + 2 * (1 + MAX_EMBEDDED_BYTES) + 9 + (32 + 3);

/// Most nodes in the proof of one key. Each step down consumes at least one bit of the key; the root and a
/// copy of the last, embedded node are added.
pub const MAX_PROOF_NODES: usize = MAX_PATH_BITS + 2;

/// Most nodes in a multi-proof. A full block of storage reads (6.8 million gas at 200 per SLOAD) reads 34,000
/// slots, with about 3 nodes each below the top that they share. With [`MAX_NODE_BYTES`] this limits the
/// proof to 35 MB.
pub const MAX_MULTIPROOF_NODES: usize = 131_072;

/// Most keys of one multi-proof: more than the number of slots that one block can read.
pub const MAX_MULTIPROOF_KEYS: usize = 65_536;

/// Most bytes of long values in one multi-proof. The format allows 2^24 - 1 bytes for a value, but code has
/// at most 24,576, and a call seldom touches more than some hundred contracts.
pub const MAX_LONG_VALUE_BYTES: usize = 32 * 1024 * 1024;

/// Most bytes in one set of proven nodes, which can be merged from several proofs. Bounds the memory of the set.
pub const MAX_PROVEN_BYTES: usize = 128 * 1024 * 1024;
