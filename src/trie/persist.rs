//! Tries to and from a store of nodes: what a version adds is written once, versions read back share their nodes.

use super::bits::BitPath;
use super::limits::MAX_PATH_BITS;
use super::node::{parse_node, Child, Value};
use super::source::{NodeSource, WalkError};
use super::tree::Trie;
use super::tree_node::{Link, Stored, TreeNode};
use super::EMPTY_ROOT;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloy_primitives::{keccak256, Bytes, B256};
use thiserror::Error;

/// A stored trie cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A node or value is missing or is not one.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The bytes under a hash have another hash.
    #[error("bytes stored as {expected} hash to {found}")]
    Hash {
        /// What they are stored under.
        expected: B256,
        /// What they hash to.
        found: B256,
    },
    /// A path longer than any key.
    #[error("{0}: keys of more than {MAX_PATH_BITS} bits")]
    TooDeep(B256),
}

impl Trie {
    /// Hands out the nodes and long values of this version that the store does not hold, children before
    /// their parents. `known` tells whether the store holds a node; what lies below a known one is known.
    pub fn for_each_new(&self, known: &mut dyn FnMut(&B256) -> bool, put: &mut dyn FnMut(B256, Bytes)) {
        if let Some(top) = &self.top {
            add(top, true, known, put);
        }
    }
}

fn add(
    node: &TreeNode,
    at_root: bool,
    known: &mut dyn FnMut(&B256) -> bool,
    put: &mut dyn FnMut(B256, Bytes),
) {
    let held = at_root || !node.is_embedded();
    if held && known(&node.hash()) {
        return;
    }
    for child in [&node.left, &node.right].into_iter().flatten() {
        add(child, false, known, put);
    }
    if let Some(Stored { bytes, long_hash: Some(hash) }) = &node.value {
        put(*hash, bytes.clone());
    }
    if held {
        put(node.hash(), Bytes::from(node.to_bytes()));
    }
}

/// Reads tries back from a store. Nodes that several versions have are read once and shared. The store is
/// not trusted: everything is hashed.
pub struct Loader<'a> {
    source: &'a dyn NodeSource,
    nodes: BTreeMap<B256, Arc<TreeNode>>,
}

impl<'a> Loader<'a> {
    /// A loader that has read nothing yet.
    pub fn new(source: &'a dyn NodeSource) -> Self {
        Self { source, nodes: BTreeMap::new() }
    }

    /// The trie with this root.
    ///
    /// # Errors
    /// The node or value that is missing or wrong.
    pub fn load(&mut self, root: B256) -> Result<Trie, LoadError> {
        if root == EMPTY_ROOT {
            return Ok(Trie::new());
        }
        Ok(Trie { top: Some(self.node(&root, MAX_PATH_BITS)?) })
    }

    fn bytes(&self, hash: &B256) -> Result<Bytes, LoadError> {
        let bytes = self.source.node(hash).ok_or(WalkError::Missing(*hash))?;
        match keccak256(&bytes) {
            found if found == *hash => Ok(bytes),
            found => Err(LoadError::Hash { expected: *hash, found }),
        }
    }

    fn node(&mut self, hash: &B256, bits: usize) -> Result<Arc<TreeNode>, LoadError> {
        if let Some(node) = self.nodes.get(hash) {
            return Ok(node.clone());
        }
        let node = self.parse(hash, &self.bytes(hash)?, bits)?;
        self.nodes.insert(*hash, node.clone());
        Ok(node)
    }

    fn parse(&mut self, hash: &B256, bytes: &[u8], bits: usize) -> Result<Arc<TreeNode>, LoadError> {
        let node = parse_node(bytes).map_err(|error| WalkError::Bad { hash: *hash, error })?;
        let left_over = bits.checked_sub(node.path.len()).ok_or(LoadError::TooDeep(*hash))?;
        let value = match node.value {
            Value::None => None,
            Value::Inline(value) => Some(Stored::new(Bytes::copy_from_slice(value))),
            Value::Long { hash, len } => Some(self.long_value(*hash, len)?),
        };
        let left = self.child(hash, node.left, left_over)?;
        let right = self.child(hash, node.right, left_over)?;
        Ok(TreeNode::new(BitPath::of(node.path), value, left, right))
    }

    fn long_value(&self, hash: B256, len: u32) -> Result<Stored, LoadError> {
        let bytes = self.bytes(&hash)?;
        match bytes.len() == len as usize {
            true => Ok(Stored { bytes, long_hash: Some(hash) }),
            false => Err(WalkError::ValueLength { hash, expected: len, found: bytes.len() }.into()),
        }
    }

    fn child(&mut self, parent: &B256, child: Option<Child<'_>>, bits: usize) -> Result<Link, LoadError> {
        let Some(child) = child else { return Ok(None) };
        let bits = bits.checked_sub(1).ok_or(LoadError::TooDeep(*parent))?;
        match child {
            Child::Hash(hash) => self.node(hash, bits).map(Some),
            Child::Embedded(bytes) => self.parse(parent, bytes, bits).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::Bits;
    use alloc::vec::Vec;

    type Nodes = BTreeMap<B256, Bytes>;

    fn store(trie: &Trie, nodes: &mut Nodes) -> usize {
        let mut new = Vec::new();
        trie.for_each_new(&mut |hash| nodes.contains_key(hash), &mut |hash, bytes| new.push((hash, bytes)));
        let count = new.len();
        nodes.extend(new);
        count
    }

    fn sample(count: u32) -> Trie {
        let mut trie = Trie::new();
        for i in 0..count {
            let key = keccak256(i.to_be_bytes());
            trie.put(&key[..], alloc::vec![i as u8 | 1; 1 + (i as usize % 60)]);
        }
        trie
    }

    #[test]
    fn versions_come_back_and_share_nodes() {
        let mut nodes = Nodes::new();
        let first = sample(200);
        let all = store(&first, &mut nodes);
        let mut second = first.clone();
        second.put(b"new", Bytes::from_static(&[7; 50]));
        let added = store(&second, &mut nodes);
        assert!(added > 1 && added < all / 4, "{added} of {all}");
        assert_eq!(store(&second, &mut nodes), 0);

        let mut loader = Loader::new(&nodes);
        for trie in [&first, &second] {
            let read = loader.load(trie.root()).unwrap();
            assert_eq!((read.root(), read.children_size()), (trie.root(), trie.children_size()));
            let mut entries = 0;
            read.for_each(&mut |key, value| {
                assert_eq!(trie.get(key), Some(value));
                entries += 1;
            });
            assert!(entries >= 200);
        }
        assert_eq!(loader.load(EMPTY_ROOT).unwrap().root(), EMPTY_ROOT);
    }

    #[test]
    fn a_store_that_was_changed_is_refused() {
        let mut nodes = Nodes::new();
        let trie = sample(20);
        store(&trie, &mut nodes);
        for hash in nodes.keys().copied().collect::<Vec<_>>() {
            let bytes = nodes.remove(&hash).unwrap();
            let missing = Loader::new(&nodes).load(trie.root()).unwrap_err();
            assert_eq!(missing, LoadError::Walk(WalkError::Missing(hash)));
            let mut changed = bytes.to_vec();
            changed[0] ^= 1;
            nodes.insert(hash, changed.into());
            assert!(matches!(Loader::new(&nodes).load(trie.root()), Err(LoadError::Hash { .. })));
            nodes.insert(hash, bytes);
        }
    }

    #[test]
    fn endless_depth_is_refused() {
        // Sixty nodes of 20 bits, each the child of the next.
        let mut nodes = Nodes::new();
        let mut trie = Trie::new();
        trie.put(&[0; 40], Bytes::from_static(&[1; 40]));
        let mut node = trie.top.clone().unwrap();
        for _ in 0..60 {
            node = TreeNode::new(BitPath::of(Bits::first(&[0; 3], 20)), None, Some(node), None);
        }
        let deep = Trie { top: Some(node) };
        store(&deep, &mut nodes);
        assert!(matches!(Loader::new(&nodes).load(deep.root()), Err(LoadError::TooDeep(_))));
    }
}
