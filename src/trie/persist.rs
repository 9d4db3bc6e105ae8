//! Stores tries as nodes and loads them again. Storing a version of a trie writes only the nodes that earlier versions lack; loaded
//! versions share their nodes.

use super::EMPTY_ROOT;
use super::bits::BitPath;
use super::limits::MAX_PATH_BITS;
use super::node::{Child, Node, Value, parse_node};
use super::source::{NodeSource, WalkError};
use super::tree::Trie;
use super::tree_node::{ChildLink, NodeValue, TreeNode};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use alloy_primitives::{B256, Bytes, keccak256};
use thiserror::Error;

/// Why a stored trie cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum LoadError {
    /// A node or value is missing or invalid.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The bytes stored under a hash have another hash.
    #[error("bytes stored as {expected} hash to {found}")]
    Hash { expected: B256, found: B256 },
    /// The keys of the trie are longer than [`MAX_PATH_BITS`].
    #[error("{0}: keys of more than {MAX_PATH_BITS} bits")]
    TooDeep(B256),
    /// A node has neither a value nor children. No valid trie contains such a node.
    #[error("{0}: a node with neither a value nor children")]
    Empty(B256),
    #[error("reading the state was interrupted")]
    Interrupted,
}

impl Trie {
    /// Passes the nodes and long values that a store lacks to `put`, children before parents.
    /// `is_stored` returns whether the store has a node; if it has a node, it must have everything below the node too.
    pub fn for_each_new(&self, is_stored: &mut dyn FnMut(&B256) -> bool, put: &mut dyn FnMut(B256, Bytes)) {
        if let Some(top) = &self.top {
            store_new(top, true, is_stored, put);
        }
    }
}

/// Passes the nodes and long values at and below `node` that a store lacks to `put`. The root has an entry of its own in the store even
/// if it is short enough to be embedded.
fn store_new(
    node: &TreeNode,
    at_root: bool,
    is_stored: &mut dyn FnMut(&B256) -> bool,
    put: &mut dyn FnMut(B256, Bytes),
) {
    let has_entry = at_root || !node.is_embedded();
    if has_entry && is_stored(&node.hash()) {
        return;
    }
    for child in [&node.left, &node.right].into_iter().flatten() {
        store_new(child, false, is_stored, put);
    }
    if let Some(NodeValue { bytes, long_hash: Some(hash) }) = &node.value {
        put(*hash, bytes.clone());
    }
    if has_entry {
        put(node.hash(), Bytes::from(node.to_bytes()));
    }
}

/// Loads tries from a store. Nodes that occur in several places or versions are read once and shared, so the
/// work grows with the number of distinct nodes. The store is not trusted: everything is hashed.
pub struct Loader<'a> {
    source: &'a dyn NodeSource,
    /// The nodes that are loaded, or known to be missing, by hash.
    nodes: BTreeMap<B256, Loaded>,
    /// `None` if the source must be complete and is not trusted. Otherwise nodes may be missing, and the source has checked
    /// the hashes of those that it has; the function is called from time to time and returns whether to stop.
    partial: Option<&'a dyn Fn() -> bool>,
}

/// The loaded part of a node and of everything below it.
#[derive(Clone, Default)]
struct Loaded {
    /// The node with its available descendants; `None` if neither a value nor a child is available.
    node: ChildLink,
    /// Bits of the longest key from this node down.
    height: usize,
    /// Whether the value and everything below the node are available.
    whole: bool,
}

/// A node whose children are being read.
#[derive(Clone)]
struct OpenNode {
    hash: B256,
    bytes: Bytes,
    /// Most bits that a key may have from this node down.
    bits: usize,
}

/// Number of nodes read between two calls of the interrupt function. The function may read the clock, which takes longer than one node.
const INTERRUPT_EVERY: usize = 256;

impl<'a> Loader<'a> {
    /// Creates a loader with nothing loaded.
    pub fn new(source: &'a dyn NodeSource) -> Self {
        Self { source, nodes: BTreeMap::new(), partial: None }
    }

    /// Creates a loader for a source that has only some of the nodes and has checked their hashes. Missing
    /// nodes are read as empty. Reading stops when `interrupted` returns `true`.
    #[cfg(feature = "local")]
    pub(super) fn partial(source: &'a dyn NodeSource, interrupted: &'a dyn Fn() -> bool) -> Self {
        Self { partial: Some(interrupted), ..Self::new(source) }
    }

    /// Loads the trie with this root.
    ///
    /// # Errors
    /// Names the node or value that is missing or wrong.
    pub fn load(&mut self, root: B256) -> Result<Trie, LoadError> {
        if root == EMPTY_ROOT {
            return Ok(Trie::new());
        }
        let mut stack = Vec::new();
        self.push(root, MAX_PATH_BITS, &mut stack)?;
        // Depth first. The stack has at most two nodes per bit of the longest key.
        while let Some(next) = stack.last().cloned() {
            if self.nodes.contains_key(&next.hash) || self.visit(&next, &mut stack)? {
                stack.pop();
            }
        }
        Ok(Trie::of(self.nodes.get(&root).and_then(|loaded| loaded.node.clone())))
    }

    /// Whether everything below a loaded node is available.
    #[cfg(feature = "local")]
    pub(super) fn is_whole(&self, hash: &B256) -> bool {
        self.nodes.get(hash).is_some_and(|loaded| loaded.whole)
    }

    /// Puts a node on the stack, unless it has been loaded before.
    fn push(&mut self, hash: B256, bits: usize, stack: &mut Vec<OpenNode>) -> Result<(), LoadError> {
        if self.nodes.contains_key(&hash) {
            return Ok(());
        }
        match self.bytes(&hash) {
            Ok(bytes) => stack.push(OpenNode { hash, bytes, bits }),
            Err(LoadError::Walk(WalkError::Missing(_))) if self.partial.is_some() => {
                self.nodes.insert(hash, Loaded::default());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The bytes with this hash, checked unless the source has checked them.
    fn bytes(&self, hash: &B256) -> Result<Bytes, LoadError> {
        let bytes = self.source.node(hash).ok_or(WalkError::Missing(*hash))?;
        if self.partial.is_some() {
            return Ok(bytes);
        }
        match keccak256(&bytes) {
            found if found == *hash => Ok(bytes),
            found => Err(LoadError::Hash { expected: *hash, found }),
        }
    }

    /// Builds a node and returns `true` if its children are loaded; otherwise puts them on the stack.
    // `at.bits` bounds the depth: each child consumes the node's path and one bit.
    fn visit(&mut self, at: &OpenNode, stack: &mut Vec<OpenNode>) -> Result<bool, LoadError> {
        let due = self.nodes.len().is_multiple_of(INTERRUPT_EVERY);
        if due && self.partial.is_some_and(|interrupted| interrupted()) {
            return Err(LoadError::Interrupted);
        }
        let node = parse_node(&at.bytes).map_err(|error| WalkError::Bad { hash: at.hash, error })?;
        let bits_left = at.bits.checked_sub(node.path.len().saturating_add(1));
        let before = stack.len();
        for child in [node.left, node.right].into_iter().flatten() {
            let bits = bits_left.ok_or(LoadError::TooDeep(at.hash))?;
            if let Child::Hash(hash) = child {
                self.push(*hash, bits, stack)?;
            }
        }
        if stack.len() > before {
            return Ok(false);
        }
        let loaded = self.build(&at.hash, &node)?;
        // A child that was loaded at a smaller depth may have keys below it that are too long here.
        if loaded.height > at.bits {
            return Err(LoadError::TooDeep(at.hash));
        }
        self.nodes.insert(at.hash, loaded);
        Ok(true)
    }

    /// Builds a node with its value and its loaded children. `hash` is that of the node, or of its parent if
    /// the node is embedded.
    fn build(&self, hash: &B256, node: &Node<'_>) -> Result<Loaded, LoadError> {
        let children = [self.child(hash, node.left)?, self.child(hash, node.right)?];
        let loaded = || children.iter().flatten();
        let tallest = loaded().map(|child| child.height.saturating_add(1)).max().unwrap_or(0);
        let height = node.path.len().saturating_add(tallest);
        let value = self.value(node.value)?;
        let lacks_value = value.is_none() && node.value != Value::None;
        let whole = !lacks_value && loaded().all(|child| child.whole);
        let [left, right] = children.map(|child| child.and_then(|child| child.node));
        if value.is_none() && left.is_none() && right.is_none() {
            // In a complete source such a node is invalid. In a partial one nothing of the node is available.
            // Keeping it would let walks over repeated nodes take exponential time without finding a key.
            return match self.partial {
                Some(_) => Ok(Loaded { node: None, height, whole }),
                None => Err(LoadError::Empty(*hash)),
            };
        }
        let node = Some(TreeNode::new(BitPath::of(node.path), value, left, right));
        Ok(Loaded { node, height, whole })
    }

    /// A child of the node `parent`: a loaded one, or an embedded one, which is built here.
    fn child(&self, parent: &B256, child: Option<Child<'_>>) -> Result<Option<Loaded>, LoadError> {
        match child {
            None => Ok(None),
            Some(Child::Hash(hash)) => match self.nodes.get(hash) {
                Some(loaded) => Ok(Some(loaded.clone())),
                None => Err(WalkError::Missing(*hash).into()),
            },
            Some(Child::Embedded(bytes)) => {
                let node = parse_node(bytes).map_err(|error| WalkError::Bad { hash: *parent, error })?;
                // The parser refuses embedded nodes with children, so this recurses one level at most.
                self.build(parent, &node).map(Some)
            }
        }
    }

    /// A node's value with its bytes. `None` if there is none, or if a long value is missing from a partial source.
    fn value(&self, value: Value<'_>) -> Result<Option<NodeValue>, LoadError> {
        let (hash, len) = match value {
            Value::None => return Ok(None),
            Value::Inline(value) => return Ok(Some(NodeValue::new(Bytes::copy_from_slice(value)))),
            Value::Long { hash, len } => (*hash, len),
        };
        match self.bytes(&hash) {
            Ok(bytes) if bytes.len() == len as usize => Ok(Some(NodeValue { bytes, long_hash: Some(hash) })),
            Ok(bytes) => Err(WalkError::ValueLength { hash, expected: len, found: bytes.len() }.into()),
            Err(_) if self.partial.is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::trie::Bits;
    use alloc::sync::Arc;

    type Nodes = BTreeMap<B256, Bytes>;

    /// Stores a trie and returns how many nodes and values were new.
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
    fn versions_are_loaded_as_stored_and_share_nodes() {
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
    fn a_store_with_missing_or_changed_bytes_is_refused() {
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
    fn a_trie_with_too_long_keys_is_refused() {
        // Sixty nodes of 20 bits, each the child of the next.
        let mut nodes = Nodes::new();
        let mut trie = Trie::new();
        trie.put(&[0; 40], Bytes::from_static(&[1; 40]));
        let mut node = trie.top.clone().unwrap();
        for _ in 0..60 {
            node = TreeNode::new(BitPath::of(Bits::first(&[0; 3], 20)), None, Some(node), None);
        }
        let deep = Trie::of(Some(node));
        store(&deep, &mut nodes);
        assert!(matches!(Loader::new(&nodes).load(deep.root()), Err(LoadError::TooDeep(_))));
    }

    /// A node with a short value and no path.
    pub(in crate::trie) fn leaf() -> TreeNode {
        let value = Some(NodeValue::new(Bytes::from_static(&[7; 30])));
        Arc::into_inner(TreeNode::new(BitPath::default(), value, None, None)).unwrap()
    }

    /// Stores `levels` nodes above `leaf`. Both children of each node are the node before it.
    pub(in crate::trie) fn doubled(leaf: TreeNode, levels: usize, nodes: &mut Nodes) -> B256 {
        let mut hash = keccak256(leaf.to_bytes());
        nodes.insert(hash, leaf.to_bytes().into());
        for _ in 0..levels {
            let child = Some(Child::Hash(&hash));
            let node = Node {
                path: Bits::first(&[], 0),
                left: child,
                right: child,
                children_size: 1,
                value: Value::None,
            };
            let bytes = node.to_bytes();
            hash = keccak256(&bytes);
            nodes.insert(hash, bytes.into());
        }
        hash
    }

    /// A trie of 60 levels in which both children of each node are equal has 2^60 keys. It is loaded in 61
    /// steps.
    #[test]
    fn repeated_children_are_read_once() {
        let mut nodes = Nodes::new();
        let root = doubled(leaf(), 60, &mut nodes);
        let read = Loader::new(&nodes).load(root).unwrap();
        assert_eq!(read.get(&[0xa5; 8]), None);
        assert!(read.children_size() > 1 << 60);
        let mut seen = 0;
        let whole = read.for_each_below(&[], 1_000, &mut |_, _| {
            seen += 1;
            true
        });
        assert!(!whole && seen < 1_000, "a walk over keys stops at its node limit");
    }

    /// A node can be loaded first at a small depth and occur again where its keys are too long.
    #[test]
    fn a_shared_node_is_checked_for_depth_in_every_place() {
        let mut nodes = Nodes::new();
        let link = |path: usize, left: &B256, right: &B256, nodes: &mut Nodes| {
            let zeros = [0; 128];
            let node = Node {
                path: Bits::first(&zeros, path),
                left: Some(Child::Hash(left)),
                right: Some(Child::Hash(right)),
                children_size: 1,
                value: Value::None,
            };
            let bytes = node.to_bytes();
            let hash = keccak256(&bytes);
            nodes.insert(hash, bytes.into());
            hash
        };
        let value = Some(NodeValue::new(Bytes::from_static(&[7; 30])));
        let leaf = TreeNode::new(BitPath::of(Bits::first(&[0; 128], 800)), value, None, None);
        let leaf = doubled(Arc::into_inner(leaf).unwrap(), 0, &mut nodes);
        let deep = link(300, &leaf, &leaf, &mut nodes);
        let root = link(0, &leaf, &deep, &mut nodes);
        assert!(matches!(Loader::new(&nodes).load(root), Err(LoadError::TooDeep(_))));
    }

    #[test]
    fn a_node_without_value_and_children_is_refused() {
        let empty = TreeNode::new(BitPath::default(), None, None, None);
        let mut nodes = Nodes::new();
        let root = doubled(Arc::into_inner(empty).unwrap(), 3, &mut nodes);
        assert!(matches!(Loader::new(&nodes).load(root), Err(LoadError::Empty(_))));
    }
}
