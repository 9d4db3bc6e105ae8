//! The persistent trie: clones are cheap and share their nodes.

use super::EMPTY_ROOT;
use super::base::{Overlaid, TrieBase};
use super::bits::{BitPath, Bits};
use super::edit::{Removal, put, remove};
use super::tree_node::{ChildLink, NodeValue, TreeNode};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloy_primitives::{B256, Bytes, keccak256};

/// A Unitrie in memory. Cloning it increments one reference count; changing it copies only the nodes from the
/// root to the changed place. Hashes are computed on demand and cached. The root depends only on keys and
/// values, not on the order of changes.
#[derive(Clone, Debug, Default)]
pub struct Trie {
    pub(super) top: ChildLink,
    /// The base, whose values count for keys without a value in `top`. Only above a base, `top` has empty values: each hides a value of
    /// the base.
    below: Option<Overlaid>,
}

impl Trie {
    /// The empty trie.
    pub fn new() -> Self {
        Self::default()
    }

    /// A trie that contains only the changes of the values of a base. Its root is not that of the whole trie, whose other
    /// nodes are not available, but keccak-256 of the base's root, of the root of a trie of the changes, and of the
    /// prefixes that were deleted. Such a trie has no proofs, and lists only the changes.
    pub fn above(base: Arc<dyn TrieBase>) -> Self {
        Self { top: None, below: Some(Overlaid::new(base)) }
    }

    /// Whether this trie is above a base ([`Self::above`]).
    pub fn is_above_base(&self) -> bool {
        self.below.is_some()
    }

    /// A trie of nodes that are all in memory.
    pub(super) fn of(top: ChildLink) -> Self {
        Self { top, below: None }
    }

    /// True if no key has a value.
    pub fn is_empty(&self) -> bool {
        self.top.is_none() && self.below.is_none()
    }

    /// The value under `key`.
    pub fn get(&self, key: &[u8]) -> Option<&Bytes> {
        let node = self.top.as_deref().and_then(|top| top.find(Bits::of_key(key)));
        match (node.and_then(|node| node.value.as_ref()), &self.below) {
            (Some(stored), None) => Some(&stored.bytes),
            (Some(stored), Some(_)) => Some(&stored.bytes).filter(|value| !value.is_empty()),
            (None, below) => below.as_ref()?.value(key),
        }
    }

    /// keccak-256 and length in bytes of the value under `key`. A value of more than 32 bytes is not hashed
    /// again, because its node stores the hash.
    pub fn value_hash(&self, key: &[u8]) -> Option<(B256, usize)> {
        if self.below.is_some() {
            return self.get(key).map(|value| (keccak256(value), value.len()));
        }
        self.top.as_deref()?.find(Bits::of_key(key))?.value_hash()
    }

    /// The value under `key`, and the result of [`Self::value_hash`] for the key `key | rest`; `rest` must not be empty.
    pub(crate) fn get_with_hash_below(
        &self,
        key: &[u8],
        rest: &[u8],
    ) -> Option<(&Bytes, Option<(B256, usize)>)> {
        if self.below.is_some() {
            return Some((self.get(key)?, self.value_hash(&[key, rest].concat())));
        }
        let node = self.top.as_deref()?.find(Bits::of_key(key))?;
        let below = || {
            let (bit, rest) = Bits::of_key(rest).split_first()?;
            node.child(bit).as_deref()?.find(rest)?.value_hash()
        };
        Some((&node.value.as_ref()?.bytes, below()))
    }

    /// Sets the value under `key`; an empty value deletes it. Values must be shorter than 2^24 bytes, the
    /// limit of the node format.
    pub fn put(&mut self, key: &[u8], value: impl Into<Bytes>) {
        let value = value.into();
        if value.is_empty() {
            self.delete(key);
        } else if self.get(key) != Some(&value) {
            self.top = Some(put(&self.top, Bits::of_key(key), NodeValue::new(value)));
        }
    }

    /// Deletes the value under `key` and returns whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        if self.below.is_none() {
            return self.remove(key, Removal::Value);
        }
        let had_value = self.get(key).is_some();
        if had_value {
            self.top = Some(put(&self.top, Bits::of_key(key), NodeValue::new(Bytes::new())));
        }
        had_value
    }

    /// Deletes every value whose key begins with `prefix` (an account with its code and storage) and returns
    /// whether there was one; above a base, whose values cannot be listed, always `true`.
    pub fn delete_subtree(&mut self, prefix: &[u8]) -> bool {
        let removed = self.remove(prefix, Removal::Subtree);
        if let Some(below) = &mut self.below {
            below.delete(prefix);
        }
        removed || self.below.is_some()
    }

    /// Removes values of `top`, and returns whether there were any.
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
        let root = self.top.as_ref().map_or(EMPTY_ROOT, |top| top.hash());
        self.below.as_ref().map_or(root, |below| below.root(root, self.top.is_none()))
    }

    /// Bytes of all nodes and long values below the root (`childrenSize` of RSKIP-107).
    pub fn children_size(&self) -> u64 {
        self.top.as_ref().map_or(0, |top| top.children_size())
    }

    /// keccak-256 of the node whose path ends at `key`, with or without a value, embedded or not.
    pub fn node_hash(&self, key: &[u8]) -> Option<B256> {
        self.top.as_deref()?.find(Bits::of_key(key)).map(TreeNode::hash)
    }

    /// The proof of `key`, present or absent: the serialized nodes on its path, root first. Embedded nodes
    /// and long values are not listed.
    pub fn proof(&self, key: &[u8]) -> Vec<Bytes> {
        let mut nodes = Vec::new();
        let mut key = Bits::of_key(key);
        let mut link = self.top.as_deref();
        while let Some(node) = link {
            // The root is never embedded, even if it is short.
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

    /// Passes everything that a store of nodes needs to `visit`: each node that is not embedded (and the root), and each long
    /// value, with its hash; parents before children, left before right.
    pub fn for_each_stored(&self, visit: &mut dyn FnMut(B256, Bytes)) {
        let mut waiting: Vec<&TreeNode> = self.top.as_deref().into_iter().collect();
        let mut at_root = true;
        while let Some(node) = waiting.pop() {
            if at_root || !node.is_embedded() {
                visit(node.hash(), Bytes::from(node.to_bytes()));
            }
            at_root = false;
            if let Some(NodeValue { bytes, long_hash: Some(hash) }) = &node.value {
                visit(*hash, bytes.clone());
            }
            waiting.extend([&node.right, &node.left].into_iter().filter_map(|link| link.as_deref()));
        }
    }

    /// Passes every key with its value to `visit`, in ascending order of keys. Only keys of whole bytes are
    /// visited.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], &Bytes)) {
        self.for_each_below(&[], usize::MAX, &mut |key, value| {
            visit(key, value);
            true
        });
    }

    /// As [`Self::for_each`], for the keys that begin with `prefix`, until `visit` returns `false`. Returns
    /// whether the walk was complete. A trie with `n` such keys has fewer than `2 * n` nodes below the
    /// prefix. The walk also stops after `nodes` nodes, because a trie that contains the same node many times
    /// can take exponential time to walk.
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

/// Walks over `node` and everything below it, in ascending order of keys; `key` has the bits above the node. Stops when `visit` returns
/// `false` or after `left` nodes, and returns whether neither happened.
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
    let value = node.value.as_ref().filter(|value| !value.bytes.is_empty());
    if let (Some(value), Some(whole)) = (value, key.whole_bytes())
        && !visit(whole, &value.bytes)
    {
        return false;
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
