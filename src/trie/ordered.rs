//! Tries of lists, whose roots a header states: the transactions and receipts of a block.

use super::tree::Trie;
use alloc::vec::Vec;
use alloy_primitives::{B256, Bytes};

/// Serialization of the nodes under a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFormat {
    /// The format of RSKIP-107, used from the activation of RSKIP-126 on.
    Rskip107,
    /// The orchid format, used before RSKIP-126. The flag for tries whose keys are hashes is off.
    Orchid,
}

/// Root of a list: the keys are the RLP encodings of the indices, the values are the items. The root of an
/// empty list is [`EMPTY_ROOT`](super::EMPTY_ROOT) in both formats.
pub fn ordered_root(items: &[impl AsRef<[u8]>], format: NodeFormat) -> B256 {
    let trie = ordered_trie(items);
    match format {
        NodeFormat::Rskip107 => trie.root(),
        NodeFormat::Orchid => trie.orchid_root(false),
    }
}

/// The trie whose root [`ordered_root`] returns.
pub fn ordered_trie(items: &[impl AsRef<[u8]>]) -> Trie {
    let mut trie = Trie::new();
    for (index, item) in items.iter().enumerate() {
        trie.put(&index_key(index as u64), Bytes::copy_from_slice(item.as_ref()));
    }
    trie
}

/// Key of the item at `index`: the RLP of the index (0 is 0x80, 1 to 127 one byte, 128 is 0x8180).
pub fn index_key(index: u64) -> Vec<u8> {
    alloy_rlp::encode(index)
}
