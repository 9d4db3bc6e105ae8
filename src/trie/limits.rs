//! What a verifier takes from outside, at most. Each limit lies well above what Rootstock can produce,
//! so none refuses an honest proof.

/// Longest key, in bytes. The longest state key (a storage slot) has 74, an index key at most 9.
pub const MAX_KEY_BYTES: usize = 128;

/// Longest shared path of one node, in bits: a whole key.
pub const MAX_PATH_BITS: usize = MAX_KEY_BYTES * 8;

/// A terminal child whose serialization is at most this long stands inside its parent (RSKIP-107).
pub const MAX_EMBEDDED_BYTES: usize = 44;

/// A value longer than this is replaced by its hash and length (RSKIP-107).
pub const MAX_INLINE_VALUE: usize = 32;

/// Longest serialization of one node: flags, path length code (1 + 3) and path, two embedded children
/// with their length bytes, childrenSize varint, value hash with its three length bytes.
pub const MAX_NODE_BYTES: usize = 1 + 4 + MAX_KEY_BYTES + 2 * (1 + MAX_EMBEDDED_BYTES) + 9 + (32 + 3);

/// Most nodes in the proof of one key: every step down uses up at least one bit of the key, then the
/// root, and the last embedded node listed again.
pub const MAX_PROOF_NODES: usize = MAX_PATH_BITS + 2;

/// Most nodes in a multi-proof. A full block of storage reads (6.8 million gas at 200 per SLOAD) is
/// 34,000 slots of about 3 nodes each below the shared top; with [`MAX_NODE_BYTES`] this bounds the
/// bytes at 35 MB.
pub const MAX_MULTIPROOF_NODES: usize = 131_072;

/// Most keys asked of one multi-proof: as many as slots one block can read, and room.
pub const MAX_MULTIPROOF_KEYS: usize = 65_536;

/// Most bytes of long values beside one multi-proof: one value can have 2^24 - 1 by its format, code has
/// at most 24,576, and a call seldom touches more than some hundred contracts.
pub const MAX_LONG_VALUE_BYTES: usize = 32 * 1024 * 1024;

/// Most bytes that one set of proven nodes holds (several proofs merged).
pub const MAX_PROVEN_BYTES: usize = 128 * 1024 * 1024;
