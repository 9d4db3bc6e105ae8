//! The nodes of a trie in memory by their hashes, so that functions over a [`NodeSource`] can read it.

use alloc::collections::BTreeMap;
use core::cell::RefCell;

use alloy_primitives::{B256, Bytes};

use super::source::NodeSource;
use super::tree::Trie;
use super::tree_node::{ChildLink, NodeValue, TreeNode};

/// The nodes and long values of a trie, each under its hash. A node is found once its parent was read, so work and memory grow with the
/// number of reads, not with the size of the trie.
#[derive(Debug)]
pub struct TrieNodes<'t> {
    /// The root, and the children and long values of all nodes that were read.
    reachable: RefCell<BTreeMap<B256, StoredItem<'t>>>,
}

/// The content with a hash: a node or a long value.
#[derive(Debug, Clone, Copy)]
enum StoredItem<'t> {
    Node(&'t TreeNode),
    Value(&'t Bytes),
}

impl Trie {
    /// The nodes of this trie by their hashes.
    pub fn nodes(&self) -> TrieNodes<'_> {
        let root = self.top.as_deref().map(|top| (top.hash(), StoredItem::Node(top)));
        TrieNodes { reachable: RefCell::new(root.into_iter().collect()) }
    }
}

impl<'t> TrieNodes<'t> {
    /// Adds everything that a node states by hash: its children, its long value, and the long values of embedded children.
    fn add_below(&self, node: &'t TreeNode) {
        let mut reachable = self.reachable.borrow_mut();
        let mut add_value = |node: &'t TreeNode| {
            if let Some(NodeValue { bytes, long_hash: Some(hash) }) = &node.value {
                reachable.insert(*hash, StoredItem::Value(bytes));
            }
        };
        add_value(node);
        let children: [&'t ChildLink; 2] = [&node.left, &node.right];
        let children = children.into_iter().filter_map(|link| link.as_deref());
        for child in children.clone().filter(|child| child.is_embedded()) {
            add_value(child);
        }
        for child in children.filter(|child| !child.is_embedded()) {
            reachable.insert(child.hash(), StoredItem::Node(child));
        }
    }
}

impl NodeSource for TrieNodes<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        let item = *self.reachable.borrow().get(hash)?;
        Some(match item {
            StoredItem::Value(bytes) => bytes.clone(),
            StoredItem::Node(node) => {
                self.add_below(node);
                Bytes::from(node.to_bytes())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::trie::{lookup_value, prove};

    #[test]
    fn every_key_is_found_by_hashes_alone() {
        let mut trie = Trie::new();
        for index in 0..200u32 {
            let length = if index % 3 == 0 { 70 } else { 5 };
            trie.put(&index.wrapping_mul(0x9e37_79b9).to_be_bytes(), alloc::vec![index as u8; length]);
        }
        let nodes = trie.nodes();
        for index in 0..220u32 {
            let key = index.wrapping_mul(0x9e37_79b9).to_be_bytes();
            assert_eq!(lookup_value(&nodes, trie.root(), &key).unwrap().as_ref(), trie.get(&key));
            assert_eq!(prove(&nodes, trie.root(), &key).unwrap(), trie.proof(&key));
        }
        let mut stored = BTreeMap::new();
        trie.for_each_stored(&mut |hash, bytes| drop(stored.insert(hash, bytes)));
        assert!(stored.iter().all(|(hash, bytes)| nodes.node(hash).as_ref() == Some(bytes)));
        assert_eq!(Trie::new().nodes().node(&Trie::new().root()), None);
    }
}
