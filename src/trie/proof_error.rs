//! Why a proof proves nothing.

use super::node_error::NodeError;
use alloy_primitives::B256;
use thiserror::Error;

/// A proof is refused. `index` counts the nodes in the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProofError {
    /// More nodes than a proof may have.
    #[error("{count} nodes, at most {max}")]
    TooManyNodes {
        /// Nodes given.
        count: usize,
        /// Nodes allowed.
        max: usize,
    },
    /// More keys than one multi-proof may be asked for.
    #[error("{count} keys, at most {max}")]
    TooManyKeys {
        /// Keys given.
        count: usize,
        /// Keys allowed.
        max: usize,
    },
    /// A key longer than any in a trie.
    #[error("key of {len} bytes, at most {max}")]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// More bytes than may be held.
    #[error("{what}: {bytes} bytes, at most {max}")]
    TooManyBytes {
        /// What is counted.
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
    /// A node's hash is not the one that its parent, or the root, commits to.
    #[error("node {index} hashes to {found}, its parent or the root says {expected}")]
    HashMismatch {
        /// Which node.
        index: usize,
        /// The committed hash.
        expected: B256,
        /// The hash of the bytes.
        found: B256,
    },
    /// The proof ends before the key does.
    #[error("node {hash} is missing")]
    Missing {
        /// Hash of the node that is needed next.
        hash: B256,
    },
    /// A node listed beside its parent differs from the bytes inside the parent.
    #[error("node {index} differs from the node embedded in its parent")]
    EmbeddedDiffers {
        /// Which node.
        index: usize,
    },
    /// A node that no key needs.
    #[error("node {index} is not on the way to any key")]
    UnusedNode {
        /// Which node.
        index: usize,
    },
    /// The value is given by hash and was not handed in.
    #[error("the value of {len} bytes with hash {hash} is missing")]
    LongValueMissing {
        /// Hash of the value.
        hash: B256,
        /// Length of the value in bytes.
        len: u32,
    },
    /// The value handed in has another hash.
    #[error("value hashes to {found}, the node says {expected}")]
    LongValueHash {
        /// The hash in the node.
        expected: B256,
        /// The hash of the value.
        found: B256,
    },
    /// The value handed in has the hash but not the length that the node states.
    #[error("value has {found} bytes, the node says {expected}")]
    LongValueLength {
        /// The length in the node.
        expected: u32,
        /// The length of the value.
        found: usize,
    },
    /// A value was handed in that no key needs.
    #[error("value {index} belongs to no key")]
    UnusedValue {
        /// Which value.
        index: usize,
    },
}
