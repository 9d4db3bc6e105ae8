//! Changes to the persistent trie ([`Trie`](super::Trie)). A change copies the nodes from the root to the changed node and shares
//! the rest. Recursion descends one level per node, so it is never deeper than the key has bits.

use super::bits::{BitPath, Bits};
use super::tree_node::{ChildLink, NodeValue, TreeNode};
use alloc::sync::Arc;

/// Returns the subtree with `value` set under `key`.
pub(super) fn put(link: &ChildLink, key: Bits<'_>, value: NodeValue) -> Arc<TreeNode> {
    let Some(node) = link else {
        return TreeNode::new(BitPath::of(key), Some(value), None, None);
    };
    let path = node.path.bits();
    let shared = key.common_prefix(path);
    let Some((down, below)) = path.skip(shared).split_first() else {
        return put_below(node, key.skip(shared), value);
    };
    // The key diverges from the node's path, or ends inside it: the path is split there.
    let old = TreeNode::new(BitPath::of(below), node.value.clone(), node.left.clone(), node.right.clone());
    let head = BitPath::of(path.take(shared));
    match key.skip(shared).split_first() {
        None => with_children(head, Some(value), down, Some(old), None),
        Some((_, rest)) => {
            let new = TreeNode::new(BitPath::of(rest), Some(value), None, None);
            with_children(head, None, down, Some(old), Some(new))
        }
    }
}

/// Sets a value in the subtree of `node`, whose path is a prefix of the key; `rest` is the key after the
/// path.
fn put_below(node: &Arc<TreeNode>, rest: Bits<'_>, value: NodeValue) -> Arc<TreeNode> {
    match rest.split_first() {
        None => TreeNode::new(node.path.clone(), Some(value), node.left.clone(), node.right.clone()),
        Some((bit, rest)) => {
            let child = put(node.child(bit), rest, value);
            let other = node.child(!bit).clone();
            with_children(node.path.clone(), node.value.clone(), bit, Some(child), other)
        }
    }
}

/// Creates a node whose child on side `bit` is `child` and whose other child is `other`.
fn with_children(
    path: BitPath,
    value: Option<NodeValue>,
    bit: bool,
    child: ChildLink,
    other: ChildLink,
) -> Arc<TreeNode> {
    let (left, right) = if bit { (other, child) } else { (child, other) };
    TreeNode::new(path, value, left, right)
}

/// The part of the trie to remove.
#[derive(Clone, Copy)]
pub(super) enum Removal {
    /// The value under the key.
    Value,
    /// Every value whose key begins with the given key.
    Subtree,
}

/// Returns the subtree without the values that `key` and `what` select; `None` if they select no value, `Some(None)` if no value is left.
pub(super) fn remove(node: &Arc<TreeNode>, key: Bits<'_>, what: Removal) -> Option<ChildLink> {
    let path = node.path.bits();
    let shared = key.common_prefix(path);
    if shared < path.len() {
        // The key diverges from the path, or ends inside it and so is a prefix of all keys below.
        let all = shared == key.len() && matches!(what, Removal::Subtree);
        return all.then_some(None);
    }
    match (key.skip(shared).split_first(), what) {
        (None, Removal::Subtree) => Some(None),
        (None, Removal::Value) => {
            node.value.as_ref()?;
            Some(merged(node.path.clone(), None, node.left.clone(), node.right.clone()))
        }
        (Some((bit, rest)), _) => {
            let child = remove(node.child(bit).as_ref()?, rest, what)?;
            let other = node.child(!bit).clone();
            let (left, right) = if bit { (other, child) } else { (child, other) };
            Some(merged(node.path.clone(), node.value.clone(), left, right))
        }
    }
}

/// Returns a node in canonical form. A node without a value and with one child is replaced by that child with
/// a longer path; one without value and children by nothing.
fn merged(path: BitPath, value: Option<NodeValue>, left: ChildLink, right: ChildLink) -> ChildLink {
    match (&value, &left, &right) {
        (None, None, None) => None,
        (None, Some(child), None) => Some(lengthened(&path, false, child)),
        (None, None, Some(child)) => Some(lengthened(&path, true, child)),
        _ => Some(TreeNode::new(path, value, left, right)),
    }
}

/// Replaces a node with path `path` by its only child, which was on side `bit`.
fn lengthened(path: &BitPath, bit: bool, child: &TreeNode) -> Arc<TreeNode> {
    let path = BitPath::join(path.bits(), bit, child.path.bits());
    TreeNode::new(path, child.value.clone(), child.left.clone(), child.right.clone())
}
