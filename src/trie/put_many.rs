//! Sets many values of a trie at once, as at the end of a block. A node that several values change is copied once; empty
//! values, which delete their keys, come first, one by one.

use super::bits::{BitPath, Bits};
use super::edit::put;
use super::tree::Trie;
use super::tree_node::{ChildLink, NodeValue, TreeNode};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloy_primitives::Bytes;

/// A key and its new value.
type Put = (Vec<u8>, Bytes);

impl Trie {
    /// Sets all these values, like calling [`Trie::put`] for each, which deletes the key of an empty value. If a key occurs several
    /// times, its last value counts.
    pub fn put_all(&mut self, mut puts: Vec<Put>) {
        // After reversing, the stable sort puts the last value of equal keys first.
        puts.reverse();
        puts.sort_by(|one, other| one.0.cmp(&other.0));
        puts.dedup_by(|later, earlier| later.0 == earlier.0);
        // Deletions, which may join nodes, are not part of the walk below.
        for (key, _) in puts.iter().filter(|(_, value)| value.is_empty()) {
            self.delete(key);
        }
        puts.retain(|(_, value)| !value.is_empty());
        self.top = put_sorted(&self.top, &puts, 0);
    }
}

/// The bits of a key after the first `depth`.
fn bits(put: &Put, depth: usize) -> Bits<'_> {
    Bits::of_key(&put.0).skip(depth)
}

/// Returns the subtree with these values set. The keys are sorted; their first `depth` bits lie above the
/// subtree.
fn put_sorted(link: &ChildLink, puts: &[Put], depth: usize) -> ChildLink {
    let (Some(first), Some(last)) = (puts.first(), puts.last()) else { return link.clone() };
    if puts.len() == 1 {
        return put_one(link, first, depth);
    }
    // The keys are sorted, so the bits that the first and the last share are common to all.
    let start = bits(first, depth);
    let mut shared = start.common_prefix(bits(last, depth));
    if let Some(node) = link {
        shared = shared.min(start.common_prefix(node.path.bits()));
    }
    let below = NodeRest::of(link, shared);
    let (value, rest) = match puts.split_first() {
        Some((here, rest)) if start.len() == shared => (Some(&here.1), rest),
        _ => (None, puts),
    };
    let middle = rest.partition_point(|put| bits(put, depth).get(shared) == Some(false));
    let (low, high) = rest.split_at_checked(middle).unwrap_or((rest, &[]));
    let next = depth.saturating_add(shared).saturating_add(1);
    let left = put_sorted(&below.left, low, next);
    let right = put_sorted(&below.right, high, next);
    let same_value = value.is_none_or(|value| below.value.is_some_and(|old| old.bytes == *value));
    // A subtree that has all these values already is not copied.
    let untouched = same_value && same(&left, &below.left) && same(&right, &below.right);
    if let (true, Some(node)) = (untouched && below.whole, link) {
        return Some(node.clone());
    }
    let value = match value {
        Some(value) if !same_value => Some(NodeValue::new(value.clone())),
        _ => below.value.cloned(),
    };
    Some(TreeNode::new(BitPath::of(start.take(shared)), value, left, right))
}

/// Returns the subtree with one value set; the same subtree if it has the value already.
fn put_one(link: &ChildLink, one: &Put, depth: usize) -> ChildLink {
    let key = bits(one, depth);
    let old = link.as_deref().and_then(|node| node.find(key)).and_then(|node| node.value.as_ref());
    if old.is_some_and(|old| old.bytes == one.1) {
        return link.clone();
    }
    Some(put(link, key, NodeValue::new(one.1.clone())))
}

/// Whether two links lead to the same node in memory, or both to none.
fn same(one: &ChildLink, other: &ChildLink) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// The part of a node after the first `shared` bits of its path.
struct NodeRest<'a> {
    value: Option<&'a NodeValue>,
    left: ChildLink,
    right: ChildLink,
    /// Whether the node's path has exactly `shared` bits, so that this part is the whole node.
    whole: bool,
}

impl<'a> NodeRest<'a> {
    /// Cuts a node; without one, all parts are empty.
    fn of(link: &'a ChildLink, shared: usize) -> Self {
        let Some(node) = link else {
            return Self { value: None, left: None, right: None, whole: false };
        };
        let path = node.path.bits();
        let Some((down, rest)) = path.skip(shared).split_first() else {
            let (left, right) = (node.left.clone(), node.right.clone());
            return Self { value: node.value.as_ref(), left, right, whole: true };
        };
        // The path is split after the shared bits; the remainder becomes a child.
        let tail =
            TreeNode::new(BitPath::of(rest), node.value.clone(), node.left.clone(), node.right.clone());
        let (left, right) = if down { (None, Some(tail)) } else { (Some(tail), None) };
        Self { value: None, left, right, whole: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn puts() -> impl Strategy<Value = Vec<Put>> {
        // Few different bytes, so that keys share prefixes, are prefixes of each other, and repeat.
        let byte = prop_oneof![Just(0u8), Just(1), Just(0x80), Just(0xff)];
        let key = proptest::collection::vec(byte, 0..4);
        let value = proptest::collection::vec(any::<u8>(), 0..40);
        proptest::collection::vec((key, value.prop_map(Bytes::from)), 0..40)
    }

    proptest! {
        #[test]
        fn setting_values_at_once_equals_setting_them_one_by_one(before in puts(), then in puts()) {
            let mut one = Trie::new();
            before.iter().for_each(|(key, value)| one.put(key, value.clone()));
            let mut all = one.clone();
            then.iter().for_each(|(key, value)| one.put(key, value.clone()));
            all.put_all(then);
            prop_assert_eq!(all.root(), one.root());
            prop_assert_eq!(all.children_size(), one.children_size());
            let mut fresh = Trie::new();
            fresh.put_all(before.clone());
            let mut slow = Trie::new();
            before.iter().for_each(|(key, value)| slow.put(key, value.clone()));
            prop_assert_eq!(fresh.root(), slow.root());
        }

        #[test]
        fn setting_the_values_a_trie_has_copies_no_node(puts in puts()) {
            let mut trie = Trie::new();
            trie.put_all(puts);
            let mut entries = Vec::new();
            trie.for_each(&mut |key, value| entries.push((key.to_vec(), value.clone())));
            let mut again = trie.clone();
            again.put_all(entries);
            prop_assert!(same(&again.top, &trie.top));
        }
    }
}
