//! Nodes of the persistent trie: immutable and shared. Sizes are computed at creation, hashes on demand.

use super::bits::{BitPath, Bits};
use super::cell::HashCell;
use super::limits::{MAX_EMBEDDED_BYTES, MAX_INLINE_VALUE};
use super::node::{Child, Node, Value, path_encoded_len};
use super::reader::varint_len;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloy_primitives::{B256, Bytes, keccak256};

/// A child, shared by all versions of the trie that contain it.
pub(super) type ChildLink = Option<Arc<TreeNode>>;

/// A value, and its hash if the node stores only the hash.
#[derive(Clone, Debug)]
pub(super) struct NodeValue {
    pub(super) bytes: Bytes,
    /// keccak-256 of the value, if it has more than 32 bytes.
    pub(super) long_hash: Option<B256>,
}

impl NodeValue {
    /// Creates a value; a long one is hashed here, once.
    pub(super) fn new(bytes: Bytes) -> Self {
        let long_hash = (bytes.len() > MAX_INLINE_VALUE).then(|| keccak256(&bytes));
        Self { bytes, long_hash }
    }

    /// The value as stored in a serialized node.
    pub(super) fn as_value(&self) -> Value<'_> {
        match &self.long_hash {
            None => Value::Inline(&self.bytes),
            // The format has three bytes for the length, far more than any value in Rootstock needs.
            Some(hash) => Value::Long { hash, len: (self.bytes.len() as u32) & 0x00ff_ffff },
        }
    }
}

/// A node in memory, shared by all versions of a trie that contain it.
#[derive(Debug)]
pub(super) struct TreeNode {
    /// Key bits shared by all keys at and below this node.
    pub(super) path: BitPath,
    pub(super) value: Option<NodeValue>,
    /// The child for keys whose next bit is 0.
    pub(super) left: ChildLink,
    /// The child for keys whose next bit is 1.
    pub(super) right: ChildLink,
    /// Total bytes of all nodes and long values below.
    children_size: u64,
    /// Length of the serialization, in bytes.
    encoded_len: usize,
    hash: HashCell,
}

impl TreeNode {
    /// Creates a node and computes its sizes from those of its children.
    pub(super) fn new(
        path: BitPath,
        value: Option<NodeValue>,
        left: ChildLink,
        right: ChildLink,
    ) -> Arc<Self> {
        let mut node =
            Self { path, value, left, right, children_size: 0, encoded_len: 0, hash: HashCell::default() };
        for child in [&node.left, &node.right].into_iter().flatten() {
            node.children_size = node.children_size.saturating_add(child.whole_size());
        }
        node.encoded_len = node.measure();
        Arc::new(node)
    }

    /// Total bytes of all nodes and long values below (`childrenSize` of RSKIP-107).
    pub(super) fn children_size(&self) -> u64 {
        self.children_size
    }

    /// True if the node has no children.
    fn is_terminal(&self) -> bool {
        self.left.is_none() && self.right.is_none()
    }

    /// True if the parent stores this node's serialization instead of its hash.
    pub(super) fn is_embedded(&self) -> bool {
        self.is_terminal() && self.encoded_len <= MAX_EMBEDDED_BYTES
    }

    /// keccak-256 of the serialization.
    pub(super) fn hash(&self) -> B256 {
        self.hash.get_or_compute(|| keccak256(self.to_bytes()))
    }

    /// Serializes the node. Descendants that have not been hashed before are hashed.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (left, right) = (ChildBuffer::of(&self.left), ChildBuffer::of(&self.right));
        let mut out = Vec::with_capacity(self.encoded_len);
        Node {
            path: self.path.bits(),
            left: left.as_ref().map(ChildBuffer::as_child),
            right: right.as_ref().map(ChildBuffer::as_child),
            children_size: self.children_size,
            value: self.value.as_ref().map_or(Value::None, NodeValue::as_value),
        }
        .encode(&mut out);
        out
    }

    /// The child for the next key bit.
    pub(super) fn child(&self, bit: bool) -> &ChildLink {
        match bit {
            false => &self.left,
            true => &self.right,
        }
    }

    /// The node under `key` (the bits not consumed above this node).
    pub(super) fn find(&self, key: Bits<'_>) -> Option<&Self> {
        let (mut node, mut key) = (self, key);
        loop {
            let path = node.path.bits();
            if key.common_prefix(path) < path.len() {
                return None;
            }
            let Some((bit, rest)) = key.skip(path.len()).split_first() else {
                return Some(node);
            };
            (node, key) = (node.child(bit).as_deref()?, rest);
        }
    }

    /// keccak-256 and length in bytes of the value.
    pub(super) fn value_hash(&self) -> Option<(B256, usize)> {
        let stored = self.value.as_ref()?;
        Some((stored.long_hash.unwrap_or_else(|| keccak256(&stored.bytes)), stored.bytes.len()))
    }

    /// Bytes that this node and everything below it add to its parent's children size.
    fn whole_size(&self) -> u64 {
        let long = match &self.value {
            Some(NodeValue { bytes, long_hash: Some(_) }) => bytes.len() as u64,
            _ => 0,
        };
        self.children_size.saturating_add(self.encoded_len as u64).saturating_add(long)
    }

    /// Length of the serialization in bytes, as of [`Node::encoded_len`].
    fn measure(&self) -> usize {
        let mut len = path_encoded_len(self.path.bits().len()).saturating_add(1);
        for child in [&self.left, &self.right].into_iter().flatten() {
            // An embedded child has a length byte before it.
            let child_len = if child.is_embedded() { child.encoded_len.saturating_add(1) } else { 32 };
            len = len.saturating_add(child_len);
        }
        if !self.is_terminal() {
            len = len.saturating_add(varint_len(self.children_size));
        }
        len.saturating_add(match &self.value {
            None => 0,
            // A hash and three bytes of length.
            Some(NodeValue { long_hash: Some(_), .. }) => 35,
            Some(NodeValue { bytes, .. }) => bytes.len(),
        })
    }
}

/// The form in which a parent serializes a child.
enum ChildBuffer {
    Hash(B256),
    Embedded(Vec<u8>),
}

impl ChildBuffer {
    fn of(link: &ChildLink) -> Option<Self> {
        let child = link.as_deref()?;
        Some(match child.is_embedded() {
            true => Self::Embedded(child.to_bytes()),
            false => Self::Hash(child.hash()),
        })
    }

    fn as_child(&self) -> Child<'_> {
        match self {
            Self::Hash(hash) => Child::Hash(hash),
            Self::Embedded(bytes) => Child::Embedded(bytes),
        }
    }
}
