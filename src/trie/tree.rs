//! The persistent trie: cheap clones that share their nodes.

use super::bits::{BitPath, Bits};
use super::edit::{put, remove, Removal};
use super::tree_node::{Link, Stored, TreeNode};
use super::EMPTY_ROOT;
use alloc::vec::Vec;
use alloy_primitives::{Bytes, B256};

/// A Unitrie in memory. A clone is one reference count; changing one copies only the nodes from the
/// root to the changed place. Hashes are computed when they are asked for and then kept. The root
/// depends on the keys and values only, not on the order of the changes.
#[derive(Clone, Debug, Default)]
pub struct Trie {
    pub(super) top: Link,
}

impl Trie {
    /// The empty trie.
    pub fn new() -> Self {
        Self::default()
    }

    /// True when no key has a value.
    pub fn is_empty(&self) -> bool {
        self.top.is_none()
    }

    /// The value under `key`.
    pub fn get(&self, key: &[u8]) -> Option<&Bytes> {
        let node = self.top.as_deref()?.find(Bits::of_key(key))?;
        node.value.as_ref().map(|stored| &stored.bytes)
    }

    /// keccak-256 and length in bytes of the value under `key`. A value of more than 32 bytes is not
    /// hashed again: its node holds the hash.
    pub fn value_hash(&self, key: &[u8]) -> Option<(B256, usize)> {
        let stored = self.top.as_deref()?.find(Bits::of_key(key))?.value.as_ref()?;
        let hash = stored.long_hash.unwrap_or_else(|| alloy_primitives::keccak256(&stored.bytes));
        Some((hash, stored.bytes.len()))
    }

    /// Sets the value under `key`; an empty value deletes it. The node format has room for values of less than
    /// 2^24 bytes.
    pub fn put(&mut self, key: &[u8], value: impl Into<Bytes>) {
        let value = value.into();
        if value.is_empty() {
            self.delete(key);
        } else if self.get(key) != Some(&value) {
            self.top = Some(put(&self.top, Bits::of_key(key), Stored::new(value)));
        }
    }

    /// Deletes the value under `key`; tells whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        self.remove(key, Removal::Value)
    }

    /// Deletes every value whose key begins with `prefix` (an account with its code and storage); tells
    /// whether there was one.
    pub fn delete_subtree(&mut self, prefix: &[u8]) -> bool {
        self.remove(prefix, Removal::Subtree)
    }

    fn remove(&mut self, key: &[u8], what: Removal) -> bool {
        let changed = self.top.as_ref().and_then(|top| remove(top, Bits::of_key(key), what));
        match changed {
            Some(top) => {
                self.top = top;
                true
            }
            None => false,
        }
    }

    /// The root hash; [`EMPTY_ROOT`] when empty.
    pub fn root(&self) -> B256 {
        self.top.as_ref().map_or(EMPTY_ROOT, |top| top.hash())
    }

    /// Bytes of all nodes and long values below the root (`childrenSize` of RSKIP-107).
    pub fn children_size(&self) -> u64 {
        self.top.as_ref().map_or(0, |top| top.children_size())
    }

    /// keccak-256 of the node whose path ends at `key`, with or without a value, embedded or not.
    pub fn node_hash(&self, key: &[u8]) -> Option<B256> {
        self.top.as_deref()?.find(Bits::of_key(key)).map(TreeNode::hash)
    }

    /// The proof of `key`, present or absent: serializations of the nodes on its way, root first.
    /// Embedded nodes are not listed separately, nor is a long value.
    pub fn proof(&self, key: &[u8]) -> Vec<Bytes> {
        let mut nodes = Vec::new();
        let mut key = Bits::of_key(key);
        let mut link = self.top.as_deref();
        while let Some(node) = link {
            // The root is never embedded, however short it is.
            if nodes.is_empty() || !node.is_embedded() {
                nodes.push(Bytes::from(node.to_bytes()));
            }
            let path = node.path.bits();
            if key.common_prefix(path) < path.len() {
                break;
            }
            let Some((bit, rest)) = key.skip(path.len()).split_first() else { break };
            (link, key) = (node.child(bit).as_deref(), rest);
        }
        nodes
    }

    /// Hands out everything a node store holds: each node that is not embedded, and each long value,
    /// with its hash; parents before their children, left before right.
    pub fn for_each_stored(&self, visit: &mut dyn FnMut(B256, Bytes)) {
        let mut waiting: Vec<&TreeNode> = self.top.as_deref().into_iter().collect();
        let mut at_root = true;
        while let Some(node) = waiting.pop() {
            if at_root || !node.is_embedded() {
                visit(node.hash(), Bytes::from(node.to_bytes()));
            }
            at_root = false;
            if let Some(Stored { bytes, long_hash: Some(hash) }) = &node.value {
                visit(*hash, bytes.clone());
            }
            waiting.extend([&node.right, &node.left].into_iter().filter_map(|link| link.as_deref()));
        }
    }

    /// Hands out every key with its value in ascending order of keys. Keys put here are whole bytes.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &Bytes)) {
        self.for_each_below(&[], usize::MAX, &mut |key, value| {
            visit(key, value);
            true
        });
    }

    /// As [`Self::for_each`], for the keys that begin with `prefix`, until `visit` says `false`; tells whether it
    /// never did. A trie with `n` such keys has less than `2 * n` nodes there; after `nodes` of them the walk ends as if
    /// `visit` had ended it, since one that repeats its nodes has any number of ways through them.
    pub fn for_each_below(
        &self,
        prefix: &[u8],
        mut nodes: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> bool,
    ) -> bool {
        let (mut key, mut rest) = (BitPath::default(), Bits::of_key(prefix));
        let mut link = self.top.as_deref();
        while let Some(node) = link {
            let path = node.path.bits();
            let shared = rest.common_prefix(path);
            rest = rest.skip(shared);
            let Some((bit, after)) = rest.split_first() else {
                return each(node, &mut key, &mut nodes, visit);
            };
            if shared < path.len() {
                break;
            }
            key.extend(path);
            key.push(bit);
            (link, rest) = (node.child(bit).as_deref(), after);
        }
        true
    }
}

/// In-order walk below `node`, with `key` the bits above it, until `visit` says `false` or `left` nodes were gone
/// through; tells whether neither happened.
fn each(
    node: &TreeNode,
    key: &mut BitPath,
    left: &mut usize,
    visit: &mut dyn FnMut(&[u8], &Bytes) -> bool,
) -> bool {
    let Some(less) = left.checked_sub(1) else { return false };
    *left = less;
    let above = key.bits().len();
    key.extend(node.path.bits());
    if let (Some(value), Some(whole)) = (&node.value, key.whole_bytes()) {
        if !visit(whole, &value.bytes) {
            return false;
        }
    }
    for bit in [false, true] {
        if let Some(child) = node.child(bit) {
            let len = key.bits().len();
            key.push(bit);
            if !each(child, key, left, visit) {
                return false;
            }
            key.truncate(len);
        }
    }
    key.truncate(above);
    true
}
