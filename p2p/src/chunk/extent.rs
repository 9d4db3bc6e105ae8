//! The order of a trie's bytes, which offsets of chunks refer to.
//!
//! The nodes are in the order of their keys: left subtree, node, right subtree. A node takes the bytes of its
//! serialization and its long value. An embedded child has no offset of its own: its bytes count with its parent, although the
//! parent's serialization contains them already.

use alloy_primitives::B256;
use rootlight::trie::{Child, Node, Value, parse_node};

/// How many bytes a node takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bytes of the node itself with its embedded children.
    pub(super) own: u64,
    /// Bytes of the node and of both subtrees.
    pub(super) total: u64,
}

impl Extent {
    /// The extent of a node: `len` bytes of serialization, `long` of its long value, `children_size` of both subtrees, and
    /// `embedded` of embedded children and their long values, which `children_size` contains.
    pub(super) const fn new(len: u64, long: u64, children_size: u64, embedded: u64) -> Self {
        let bare = len.saturating_add(long);
        Self { own: bare.saturating_add(embedded), total: bare.saturating_add(children_size) }
    }

    /// The extent of a parsed node, whose serialization has `len` bytes.
    pub(super) fn of(node: &Node<'_>, len: usize) -> Self {
        let children = [node.left, node.right].into_iter().flatten();
        let embedded = children.map(embedded_size).fold(0, u64::saturating_add);
        Self::new(len as u64, long_len(node.value), node.children_size, embedded)
    }

    /// Size of the subtrees whose root is stored by hash, both together.
    pub(super) const fn below(&self) -> u64 {
        self.total.saturating_sub(self.own)
    }
}

/// The child's hash, unless it is embedded.
pub(super) fn child_hash<'a>(child: Option<Child<'a>>) -> Option<&'a B256> {
    match child {
        Some(Child::Hash(hash)) => Some(hash),
        _ => None,
    }
}

/// Bytes of an embedded child and its long value; 0 for a child that is stored by hash.
fn embedded_size(child: Child<'_>) -> u64 {
    match child {
        Child::Hash(_) => 0,
        Child::Embedded(bytes) => {
            // Parsing succeeds: the parser of the parent has parsed its embedded children.
            let long = parse_node(bytes).map_or(0, |node| long_len(node.value));
            long.saturating_add(bytes.len() as u64)
        }
    }
}

/// Length of a long value; 0 for another one.
fn long_len(value: Value<'_>) -> u64 {
    match value {
        Value::Long { len, .. } => len.into(),
        _ => 0,
    }
}
