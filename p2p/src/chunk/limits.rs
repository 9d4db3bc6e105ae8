//! Limits on state chunks and on the search in them.

use rootlight::trie::limits::MAX_PATH_BITS;

/// Number of bytes of the trie that one chunk covers, as in the reference node.
pub const SPAN: u64 = 50 * 1024;

/// Most nodes in the range of a chunk. A node that is stored by hash has at least 6 bytes: flags, an embedded child of
/// two bytes with its length, the size of that child, and a value. One node more may begin before the range.
pub const MAX_RANGE_NODES: usize = 50 * 1024 / 6 + 1;

/// Most nodes before or after the range of a chunk: they are ancestors of a node in the range, at most one
/// for each bit of a path, and the root.
pub const MAX_PATH_NODES: usize = MAX_PATH_BITS + 1;

/// Most chunk requests of one search that wait for a response. The reference node queues three for each peer and drops further ones.
pub const MAX_IN_FLIGHT: usize = 3;

/// Most keys of one search: more than the accounts and slots that a block can read.
pub const MAX_KEYS: usize = rootlight::trie::limits::MAX_MULTIPROOF_KEYS;

/// Most chunks that are requested for one key. Each chunk shows at least one more node of the key's path and narrows
/// the range down by interpolation; 4 are the most seen in a trie of 81 MB.
pub const MAX_PROBES: u8 = 24;
