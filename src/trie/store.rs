//! The interface of the trie nodes that a full node keeps on disk, from which a host beside that node reads state.

use alloc::string::String;
use core::fmt::Debug;

use alloy_primitives::B256;
use thiserror::Error;

use super::NodeSource;

/// The trie nodes and long values that a full node stores, each under its keccak-256. An implementation compares the hash
/// of the bytes that it reads, because a store can be damaged.
pub trait TrieStore: NodeSource + Debug + Send + Sync {
    /// Why the store does not give the node or long value with this hash.
    fn why_missing(&self, hash: &B256) -> StoreFault;
}

/// Why a store does not give a node or long value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum StoreFault {
    #[error("it has no entry with this key")]
    Absent,
    #[error("the bytes under this key have another hash: the store is damaged")]
    Mismatch,
    /// The database reports an error.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}
