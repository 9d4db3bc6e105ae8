//! Errors of the trie node parser.

use super::limits::{MAX_EMBEDDED_BYTES, MAX_INLINE_VALUE, MAX_NODE_BYTES, MAX_PATH_BITS};
use core::fmt;
use thiserror::Error;

/// A part of a node's serialization, in the order of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeField {
    /// Shared path: length code and packed bits.
    Path,
    /// Left child: hash, or length and serialization.
    LeftChild,
    /// Right child.
    RightChild,
    /// Total size in bytes of everything below the node, as a Bitcoin varint.
    ChildrenSize,
    /// Value, or its hash and length.
    Value,
}

impl fmt::Display for NodeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "shared path",
            Self::LeftChild => "left child",
            Self::RightChild => "right child",
            Self::ChildrenSize => "children size",
            Self::Value => "value",
        })
    }
}

/// The node that breaks a rule: the parsed node or a child embedded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePart {
    /// The parsed node.
    Itself,
    /// Its embedded left child.
    Left,
    /// Its embedded right child.
    Right,
}

impl fmt::Display for NodePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Itself => "",
            Self::Left => " (embedded left child)",
            Self::Right => " (embedded right child)",
        })
    }
}

/// The rule of the node format (RSKIP-107) that the bytes break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum NodeRule {
    #[error("no bytes")]
    Empty,
    /// The node has more bytes than [`MAX_NODE_BYTES`].
    #[error("{0} bytes, a node has at most {MAX_NODE_BYTES}")]
    TooLarge(usize),
    /// The two top bits of the flags are not 01.
    #[error("flags {0:#04x}: the version bits must be 01")]
    Version(u8),
    #[error("{0}: bytes end too early")]
    Truncated(NodeField),
    #[error("{0}: varint {1} is not in its shortest form")]
    VarintNotMinimal(NodeField, u64),
    /// The path length is written as a varint although it has a one-byte code or is zero.
    #[error("shared path: a length of {0} bits must be written with another code")]
    PathCode(u64),
    /// The path is longer than [`MAX_PATH_BITS`].
    #[error("shared path: {0} bits, at most {MAX_PATH_BITS}")]
    PathTooLong(u64),
    #[error("shared path: last byte {0:#04x} has bits set after the path's end")]
    PathPadding(u8),
    #[error("{0}: flagged as embedded but not present")]
    EmbeddedWithoutChild(NodeField),
    /// An embedded child is longer than [`MAX_EMBEDDED_BYTES`].
    #[error("{0}: {1} bytes embedded, at most {MAX_EMBEDDED_BYTES}")]
    EmbeddedTooLong(NodeField, u8),
    #[error("{0}: an embedded node must not have children")]
    EmbeddedWithChildren(NodeField),
    /// A value inside the node is longer than [`MAX_INLINE_VALUE`].
    #[error("value: {0} bytes in the node, at most {MAX_INLINE_VALUE}")]
    InlineValueTooLong(usize),
    /// A value given by hash is short enough to be inside the node.
    #[error("value: {0} bytes by hash, must be more than {MAX_INLINE_VALUE}")]
    LongValueTooShort(u32),
    /// Bytes follow the last field.
    #[error("{0} bytes after the end of the node")]
    TrailingBytes(usize),
}

/// The error that bytes are not the one valid serialization of a trie node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("trie node{part}: {rule}")]
pub struct NodeError {
    /// The node or one of its embedded children.
    pub part: NodePart,
    /// The rule that the node breaks.
    pub rule: NodeRule,
}

impl From<NodeRule> for NodeError {
    fn from(rule: NodeRule) -> Self {
        Self { part: NodePart::Itself, rule }
    }
}
