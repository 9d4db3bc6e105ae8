//! Follows a key through the nodes in a store, and computes where in the trie's bytes the first missing node is. A node is known if
//! the store has it.

use alloy_primitives::{B256, Bytes};
use rootlight::trie::{Bits, Child, Node, NodeSource, NodeStep, Value, WalkError, parse_node};

use super::extent::{Extent, child_hash};

/// Offsets after `low`, up to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetRange {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl OffsetRange {
    /// Number of offsets.
    pub(super) const fn len(&self) -> u64 {
        self.high.saturating_sub(self.low)
    }

    /// The first `len` of these offsets.
    const fn first(&self, len: u64) -> Self {
        Self { low: self.low, high: self.low.saturating_add(len) }
    }

    /// The last `len` of these offsets.
    const fn last(&self, len: u64) -> Self {
        Self { low: self.high.saturating_sub(len), high: self.high }
    }
}

/// A node on the path of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkPosition {
    pub(super) hash: B256,
    /// The offsets of the node and everything below it.
    pub(super) subtree: OffsetRange,
    /// Number of bits of the key that lead to the node.
    pub(super) bits: usize,
}

impl WalkPosition {
    /// The root, if it is known.
    pub(super) fn root(store: &dyn NodeSource, root: B256) -> Option<Self> {
        let size = total(store, &root)?;
        Some(Self { hash: root, subtree: OffsetRange { low: 0, high: size }, bits: 0 })
    }
}

/// The end of the walk through the known nodes.
#[derive(Debug, Clone)]
pub(super) enum WalkResult {
    /// The key has this value.
    Value(Bytes),
    /// The key has no value.
    Nothing,
    /// The next node, or the long value, is not known.
    Gap {
        /// The last known node.
        at: WalkPosition,
        /// The offsets of the unknown node's subtree, or one of them if the others are not known. A chunk that covers any of these
        /// offsets contains the node.
        range: OffsetRange,
        /// Number of bits of the key that lead to the unknown node.
        bits: usize,
    },
}

/// Follows the key from a known node on. Returns the end of the walk, and the offsets of the last known node.
pub(super) fn follow(
    store: &dyn NodeSource,
    key: &[u8],
    mut at: WalkPosition,
) -> Result<(WalkResult, OffsetRange), WalkError> {
    let bits = Bits::of_key(key);
    loop {
        // The result if the store has lost the node meanwhile.
        let removed = WalkResult::Gap { at, range: at.subtree, bits: at.bits };
        let Some(stored) = store.node(&at.hash) else { return Ok((removed, at.subtree)) };
        let invalid = |error| WalkError::Bad { hash: at.hash, error };
        let node = parse_node(&stored).map_err(invalid)?;
        let located = LocatedNode { store, node: &node, extent: Extent::of(&node, stored.len()), at };
        let rest = bits.skip(at.bits);
        let reached = match node.step(rest) {
            NodeStep::Leaves => WalkResult::Nothing,
            NodeStep::Ends(value) => located.value(value),
            NodeStep::Goes(Child::Embedded(bytes), rest) => {
                match parse_node(bytes).map_err(invalid)?.step(rest) {
                    NodeStep::Ends(value) => located.value(value),
                    // An embedded node has no children, so the key has no value below it.
                    _ => WalkResult::Nothing,
                }
            }
            NodeStep::Goes(Child::Hash(hash), below) => {
                let right = rest.get(node.path.len()) == Some(true);
                let bits = bits.len().saturating_sub(below.len());
                match located.child(hash, right, bits) {
                    Ok(next) => {
                        at = next;
                        continue;
                    }
                    Err(range) => WalkResult::Gap { at, range, bits },
                }
            }
        };
        return Ok((reached, located.own()));
    }
}

/// A node with its offsets in the trie.
struct LocatedNode<'a> {
    store: &'a dyn NodeSource,
    node: &'a Node<'a>,
    extent: Extent,
    at: WalkPosition,
}

impl LocatedNode<'_> {
    /// Size of the subtree of the right or the left child; 0 if the child is absent or embedded, `None` if it is not known.
    fn child_total(&self, right: bool) -> Option<u64> {
        match child_hash(if right { self.node.right } else { self.node.left }) {
            Some(hash) => total(self.store, hash),
            None => Some(0),
        }
    }

    /// The child with this hash if it is known, else the offsets at which it is. `right`: the child is the right one; `bits`: number of
    /// bits of the key that lead to the child.
    fn child(&self, hash: &B256, right: bool, bits: usize) -> Result<WalkPosition, OffsetRange> {
        let within = |len| match right {
            false => self.at.subtree.first(len),
            true => self.at.subtree.last(len),
        };
        if let Some(len) = total(self.store, hash) {
            return Ok(WalkPosition { hash: *hash, subtree: within(len), bits });
        }
        Err(match self.child_total(!right) {
            Some(sibling) => within(self.extent.below().saturating_sub(sibling)),
            // The border between both subtrees is not known. The outer end is surely in the child's subtree.
            None => within(1),
        })
    }

    /// The offsets of the node itself, or of its whole subtree if the border to both children is not known.
    fn own(&self) -> OffsetRange {
        let OffsetRange { low, high } = self.at.subtree;
        if let Some(left) = self.child_total(false) {
            return OffsetRange { low: low.saturating_add(left), high }.first(self.extent.own);
        }
        match self.child_total(true) {
            Some(right) => OffsetRange { low, high: high.saturating_sub(right) }.last(self.extent.own),
            None => self.at.subtree,
        }
    }

    /// The value at the end of the key; a long one may be missing in the store.
    fn value(&self, value: Value<'_>) -> WalkResult {
        match value {
            Value::None => WalkResult::Nothing,
            Value::Inline(bytes) => WalkResult::Value(Bytes::copy_from_slice(bytes)),
            Value::Long { hash, len } => {
                match self.store.node(hash).filter(|value| value.len() == len as usize) {
                    Some(value) => WalkResult::Value(value),
                    None => WalkResult::Gap { at: self.at, range: self.own(), bits: self.at.bits },
                }
            }
        }
    }
}

/// Size of the subtree with this root, if that node is known.
fn total(store: &dyn NodeSource, hash: &B256) -> Option<u64> {
    let bytes = store.node(hash)?;
    let node = parse_node(&bytes).ok()?;
    Some(Extent::of(&node, bytes.len()).total)
}
