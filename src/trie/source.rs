//! Look-ups and proofs in nodes that are found by their hash ([`NodeSource`]) and whose hashes have been checked before.

use super::EMPTY_ROOT;
use super::bits::Bits;
use super::node::{Child, NodeStep, Value, parse_node};
use super::node_error::NodeError;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use alloy_primitives::{B256, Bytes, keccak256};
use thiserror::Error;

/// Nodes and long values by keccak-256. The bytes returned must have the requested hash; callers do not check
/// it again.
pub trait NodeSource {
    /// The serialization of the node, or the long value, with this hash.
    fn node(&self, hash: &B256) -> Option<Bytes>;
}

impl NodeSource for BTreeMap<B256, Bytes> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.get(hash).cloned()
    }
}

impl<S: NodeSource + ?Sized> NodeSource for &S {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        (**self).node(hash)
    }
}

/// The value under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A value of 1 to 32 bytes.
    Found(Bytes),
    /// A longer value, stored under its hash in the same source.
    FoundLong {
        /// keccak-256 of the value.
        hash: B256,
        /// Length of the value in bytes.
        len: u32,
    },
    /// No value.
    Absent,
}

/// The node at which a key ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundNode {
    /// keccak-256 of the serialization, even if the node is embedded in its parent.
    pub hash: B256,
    /// The node's value, if any.
    pub value: Lookup,
}

/// Why a look-up cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum WalkError {
    /// The source does not have this node or long value.
    #[error("node or value {0} is missing")]
    Missing(B256),
    /// The source has bytes that do not parse as a node.
    #[error("{hash}: {error}")]
    Bad { hash: B256, error: NodeError },
    /// The source has a long value whose length is not the one stated in the node.
    #[error("value {hash} has {found} bytes, the node says {expected}")]
    ValueLength { hash: B256, expected: u32, found: usize },
}

/// A node on the path of a look-up, at which the look-up of a longer key with the same beginning can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathNode {
    hash: B256,
    /// The serialization.
    stored: Bytes,
    /// Number of bits of the key that are consumed above the node.
    above: usize,
}

impl PathNode {
    /// Looks up the value of `key`, whose beginning leads to this node. The result is that of [`lookup`] from the root.
    pub(crate) fn lookup(&self, src: &dyn NodeSource, key: &[u8]) -> Result<Lookup, WalkError> {
        ending(src, self.clone(), key).map(|(value, _)| value)
    }

    /// keccak-256 of the node.
    pub(crate) fn hash(&self) -> B256 {
        self.hash
    }
}

/// Looks up the value of `key` in the trie with this root.
pub fn lookup(src: &dyn NodeSource, root: B256, key: &[u8]) -> Result<Lookup, WalkError> {
    lookup_end(src, root, key).map(|(value, _)| value)
}

/// As [`lookup`]; returns also the node at which the key ends, unless there is none or it is embedded in its parent,
/// and so has no nodes below it.
pub(crate) fn lookup_end(
    src: &dyn NodeSource,
    root: B256,
    key: &[u8],
) -> Result<(Lookup, Option<PathNode>), WalkError> {
    match top(src, root)? {
        Some(top) => ending(src, top, key),
        None => Ok((Lookup::Absent, None)),
    }
}

/// The value at which a look-up from a node on ends, and the node that has the value.
fn ending(src: &dyn NodeSource, from: PathNode, key: &[u8]) -> Result<(Lookup, Option<PathNode>), WalkError> {
    let mut found = (Lookup::Absent, None);
    walk(src, from, key, &mut |_| {}, &mut |node, _, value| found = (owned(value), node.cloned()))?;
    Ok(found)
}

/// The root's node; `None` if the trie is empty.
fn top(src: &dyn NodeSource, root: B256) -> Result<Option<PathNode>, WalkError> {
    if root == EMPTY_ROOT {
        return Ok(None);
    }
    let stored = src.node(&root).ok_or(WalkError::Missing(root))?;
    Ok(Some(PathNode { hash: root, stored, above: 0 }))
}

/// Looks up the value of `key`. A long value is read from the source as well.
pub fn lookup_value(src: &dyn NodeSource, root: B256, key: &[u8]) -> Result<Option<Bytes>, WalkError> {
    match lookup(src, root, key)? {
        Lookup::Absent => Ok(None),
        Lookup::Found(value) => Ok(Some(value)),
        Lookup::FoundLong { hash, len } => {
            let value = src.node(&hash).ok_or(WalkError::Missing(hash))?;
            match value.len() == len as usize {
                true => Ok(Some(value)),
                false => Err(WalkError::ValueLength { hash, expected: len, found: value.len() }),
            }
        }
    }
}

/// Looks up the node whose path ends exactly at `key`, with or without a value.
pub fn lookup_node(src: &dyn NodeSource, root: B256, key: &[u8]) -> Result<Option<FoundNode>, WalkError> {
    let Some(top) = top(src, root)? else { return Ok(None) };
    let mut found = None;
    walk(src, top, key, &mut |_| {}, &mut |node, bytes, value| {
        let hash = node.map_or_else(|| keccak256(bytes), |node| node.hash);
        found = Some(FoundNode { hash, value: owned(value) });
    })?;
    Ok(found)
}

/// Creates the proof of `key`: the nodes from the root to its node, or to the node where the key diverges
/// from the trie. Embedded nodes are not listed separately. The proof in an empty trie is empty.
pub fn prove(src: &dyn NodeSource, root: B256, key: &[u8]) -> Result<Vec<Bytes>, WalkError> {
    let mut nodes = Vec::new();
    if let Some(top) = top(src, root)? {
        walk(src, top, key, &mut |node| nodes.push(node.clone()), &mut |_, _, _| {})?;
    }
    Ok(nodes)
}

/// The function that gets the node at which a key ends (`None` if the node is embedded), its serialization and its value.
type VisitEnd<'a> = dyn FnMut(Option<&PathNode>, &[u8], Value<'_>) + 'a;

/// Follows `key` from a node on and passes every node on the path that is not embedded to `visit`. If the key ends at a node, passes
/// this node to `end`. Each step consumes at least one bit of the key, so the path is never longer than the key.
fn walk(
    src: &dyn NodeSource,
    from: PathNode,
    key: &[u8],
    visit: &mut dyn FnMut(&Bytes),
    end: &mut VisitEnd<'_>,
) -> Result<(), WalkError> {
    let bits = Bits::of_key(key);
    let mut key = bits.skip(from.above);
    let mut at = from;
    loop {
        visit(&at.stored);
        let hash = at.hash;
        let bad = |error| WalkError::Bad { hash, error };
        match parse_node(&at.stored).map_err(bad)?.step(key) {
            NodeStep::Leaves => return Ok(()),
            NodeStep::Ends(value) => {
                end(Some(&at), &at.stored, value);
                return Ok(());
            }
            NodeStep::Goes(Child::Hash(next), rest) => {
                let hash = *next;
                let stored = src.node(&hash).ok_or(WalkError::Missing(hash))?;
                key = rest;
                at = PathNode { hash, stored, above: bits.len().saturating_sub(rest.len()) };
            }
            NodeStep::Goes(Child::Embedded(bytes), rest) => {
                if let NodeStep::Ends(value) = parse_node(bytes).map_err(bad)?.step(rest) {
                    end(None, bytes, value);
                }
                return Ok(());
            }
        }
    }
}

/// Copies the value; a slice would keep the whole node alive.
fn owned(value: Value<'_>) -> Lookup {
    match value {
        Value::None => Lookup::Absent,
        Value::Inline(bytes) => Lookup::Found(Bytes::copy_from_slice(bytes)),
        Value::Long { hash, len } => Lookup::FoundLong { hash: *hash, len },
    }
}
