//! Errors of proof verification.

use super::node_error::NodeError;
use alloy_primitives::B256;
use thiserror::Error;

/// A proof is refused. `index` is the position of a node in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The proof has too many nodes.
    #[error("{count} nodes, at most {max}")]
    TooManyNodes {
        /// Nodes given.
        count: usize,
        /// Nodes allowed.
        max: usize,
    },
    /// The multi-proof has too many keys.
    #[error("{count} keys, at most {max}")]
    TooManyKeys {
        /// Keys given.
        count: usize,
        /// Keys allowed.
        max: usize,
    },
    /// The key is longer than any key in a trie.
    #[error("key of {len} bytes, at most {max}")]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// The proof has too many bytes.
    #[error("{what}: {bytes} bytes, at most {max}")]
    TooManyBytes {
        /// The kind of data that is counted.
        what: &'static str,
        /// Bytes given.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A node is neither raw nor exactly one RLP string in its shortest form.
    #[error("node of {len} bytes is not one RLP string in its shortest form")]
    BadWrapping {
        /// Bytes of the wrapped node.
        len: usize,
    },
    /// A node does not parse.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The hash of a node is not the one that its parent, or the root, commits to.
    #[error("node {index} hashes to {found}, its parent or the root says {expected}")]
    HashMismatch {
        /// Position of the node.
        index: usize,
        /// The committed hash.
        expected: B256,
        /// The hash of the bytes.
        found: B256,
    },
    /// The proof ends before the end of the key.
    #[error("node {hash} is missing")]
    Missing {
        /// Hash of the node that is needed next.
        hash: B256,
    },
    /// A listed copy of an embedded node differs from the bytes in its parent.
    #[error("node {index} differs from the node embedded in its parent")]
    EmbeddedDiffers {
        /// Position of the node.
        index: usize,
    },
    /// No key needs this node.
    #[error("node {index} is not on the way to any key")]
    UnusedNode {
        /// Position of the node.
        index: usize,
    },
    /// The node states the value by hash, and the value was not passed.
    #[error("the value of {len} bytes with hash {hash} is missing")]
    LongValueMissing {
        /// Hash of the value.
        hash: B256,
        /// Length of the value in bytes.
        len: u32,
    },
    /// The value passed has another hash.
    #[error("value hashes to {found}, the node says {expected}")]
    LongValueHash {
        /// The hash in the node.
        expected: B256,
        /// The hash of the value.
        found: B256,
    },
    /// The value passed has the right hash, but not the length stated in the node.
    #[error("value has {found} bytes, the node says {expected}")]
    LongValueLength {
        /// The length in the node.
        expected: u32,
        /// The length of the value.
        found: usize,
    },
    /// No key needs this value.
    #[error("value {index} belongs to no key")]
    UnusedValue {
        /// Position of the value.
        index: usize,
    },
}
