//! Errors of proof verification.

use super::node_error::NodeError;
use alloy_primitives::B256;
use thiserror::Error;

/// Why a proof is refused. `index` is the position of a node or value in the given list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ProofError {
    #[error("{count} nodes, at most {max}")]
    TooManyNodes { count: usize, max: usize },
    #[error("{count} keys, at most {max}")]
    TooManyKeys { count: usize, max: usize },
    /// The key is longer than any key in a trie.
    #[error("key of {len} bytes, at most {max}")]
    KeyTooLong { len: usize, max: usize },
    #[error("{what}: {bytes} bytes, at most {max}")]
    TooManyBytes { what: &'static str, bytes: usize, max: usize },
    /// A node is neither raw nor exactly one RLP string in its shortest form.
    #[error("node of {len} bytes is not one RLP string in its shortest form")]
    BadWrapping { len: usize },
    /// A node does not parse.
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("node {index} hashes to {found}, its parent or the root says {expected}")]
    HashMismatch { index: usize, expected: B256, found: B256 },
    /// The proof ends before the end of the key.
    #[error("node {hash} is missing")]
    Missing { hash: B256 },
    /// A listed copy of an embedded node differs from the bytes in its parent.
    #[error("node {index} differs from the node embedded in its parent")]
    EmbeddedDiffers { index: usize },
    #[error("node {index} is not on the way to any key")]
    UnusedNode { index: usize },
    /// The node states the value by hash, and the value was not passed.
    #[error("the value of {len} bytes with hash {hash} is missing")]
    LongValueMissing { hash: B256, len: u32 },
    /// The value passed has another hash.
    #[error("value hashes to {found}, the node says {expected}")]
    LongValueHash { expected: B256, found: B256 },
    /// The value passed has the right hash, but not the length stated in the node.
    #[error("value has {found} bytes, the node says {expected}")]
    LongValueLength { expected: u32, found: usize },
    #[error("value {index} belongs to no key")]
    UnusedValue { index: usize },
}
