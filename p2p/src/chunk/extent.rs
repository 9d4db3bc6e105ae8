//! The order of a trie's bytes, which offsets of chunks refer to.
//!
//! The nodes are in the order of their keys: left subtree, node, right subtree. A node takes the bytes of its
//! serialization and its long value. An embedded child has no place of its own: its bytes count again with its parent,
//! beside the parent's serialization that contains them.

use alloy_primitives::B256;
use rootlight::trie::{Child, Node, Value, parse_node};

/// How many bytes a node takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// The node itself with its embedded children.
    pub(super) own: u64,
    /// The node and everything below.
    pub(super) total: u64,
}

impl Extent {
    /// The extent of a node with this length of serialization and long value, this size of everything below, and this
    /// size of embedded children and their long values.
    pub(super) const fn new(len: u64, long: u64, children_size: u64, embedded: u64) -> Self {
        let bare = len.saturating_add(long);
        Self { own: bare.saturating_add(embedded), total: bare.saturating_add(children_size) }
    }

    /// The extent of a parsed node.
    pub(super) fn of(node: &Node<'_>, len: usize) -> Self {
        let children = [node.left, node.right].into_iter().flatten();
        let embedded = children.map(embedded_size).fold(0, u64::saturating_add);
        Self::new(len as u64, long_len(node.value), node.children_size, embedded)
    }

    /// Size of both subtrees whose root is stored by hash.
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

fn embedded_size(child: Child<'_>) -> u64 {
    match child {
        Child::Hash(_) => 0,
        Child::Embedded(bytes) => {
            // The parent was parsed, and with it its embedded children.
            let long = parse_node(bytes).map_or(0, |node| long_len(node.value));
            long.saturating_add(bytes.len() as u64)
        }
    }
}

fn long_len(value: Value<'_>) -> u64 {
    match value {
        Value::Long { len, .. } => len.into(),
        _ => 0,
    }
}
