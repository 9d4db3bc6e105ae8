//! The reasons why a chunk proves nothing.

use alloy_primitives::B256;
use rootlight::types::FieldError;
use thiserror::Error;

use super::limits::{MAX_PATH_NODES, MAX_RANGE_NODES};

/// A chunk is malformed, or is not a range of the requested state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ChunkError {
    /// The lists are malformed.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    /// There are more than [`MAX_RANGE_NODES`] nodes in the range, or more than [`MAX_PATH_NODES`] before or after it.
    #[error("chunk: more than {MAX_RANGE_NODES} nodes, or {MAX_PATH_NODES} before or after them")]
    TooManyNodes,
    #[error("chunk: no node")]
    Empty,
    /// The hashes of the last node's children are missing, or are given without a node.
    #[error("chunk: the last node must have two hashes, and no node none")]
    LastHashes,
    #[error("chunk: node {index}: {rule}")]
    Node { index: usize, rule: EncodingRule },
    /// A node has a child by hash, but the chunk contains neither the child nor its hash.
    #[error("chunk: node {0}: the hash of a child is missing")]
    MissingHash(usize),
    /// The chunk contains a child, or its hash, that the node does not have.
    #[error("chunk: node {0} has no such child")]
    NoSuchChild(usize),
    /// The chunk contains both a child and its hash, and they differ.
    #[error("chunk: node {0}: a child differs from its hash")]
    HashDiffers(usize),
    /// The nodes belong to another root.
    #[error("chunk: root {found}, expected {expected}")]
    Root { expected: B256, found: B256 },
    /// The range does not begin with the node at the requested offset.
    #[error("chunk: does not begin at offset {from}")]
    Elsewhere { from: u64 },
}

impl ChunkError {
    /// Whether the chunk is of no state at all, so that no honest server sends it. An honest server may send a chunk of another
    /// state, because chunks are requested by the number of a block, and the server may be on another branch. It may also send
    /// a chunk beyond the limits of this crate.
    pub const fn fits_no_state(&self) -> bool {
        match self {
            Self::Rlp(_)
            | Self::Empty
            | Self::LastHashes
            | Self::Node { .. }
            | Self::MissingHash(_)
            | Self::NoSuchChild(_)
            | Self::HashDiffers(_) => true,
            Self::TooManyNodes | Self::Root { .. } | Self::Elsewhere { .. } => false,
        }
    }
}

/// The rule of a node's form in chunks that is broken. Rules of the node's serialization are not checked, because its hash covers
/// the serialization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum EncodingRule {
    /// The bytes end inside a field.
    #[error("bytes end too early")]
    Truncated,
    /// The two top bits of the flags are not 01.
    #[error("flags {0:#04x}: the version bits must be 01")]
    Version(u8),
    #[error("a child is flagged as embedded but not present")]
    EmbeddedWithoutChild,
    /// An embedded child has children or is longer than 44 bytes.
    #[error("an embedded child has children or is too long")]
    Embedded,
    /// The shared path is longer than any key.
    #[error("the shared path is too long")]
    Path,
    #[error("a value of {0} bytes does not agree with the flags")]
    Value(usize),
    /// A node without children has no value.
    #[error("neither children nor a value")]
    Nothing,
}
