//! Changes to the persistent trie. A change copies the nodes from the root to the place and shares the
//! rest. Recursion goes one level per node, so never deeper than a key has bits.

use super::bits::{BitPath, Bits};
use super::tree_node::{Link, Stored, TreeNode};
use alloc::sync::Arc;

/// The subtree with `value` under `key`.
pub(super) fn put(link: &Link, key: Bits<'_>, value: Stored) -> Arc<TreeNode> {
    let Some(node) = link else {
        return TreeNode::new(BitPath::of(key), Some(value), None, None);
    };
    let path = node.path.bits();
    let shared = key.common_prefix(path);
    let Some((down, below)) = path.skip(shared).split_first() else {
        return put_below(node, key.skip(shared), value);
    };
    // The key leaves inside the node's path: the path is split there.
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

/// Puts where `node`'s path is a prefix of the key; `rest` is the key after it.
fn put_below(node: &Arc<TreeNode>, rest: Bits<'_>, value: Stored) -> Arc<TreeNode> {
    match rest.split_first() {
        None => TreeNode::new(node.path.clone(), Some(value), node.left.clone(), node.right.clone()),
        Some((bit, rest)) => {
            let child = put(node.child(bit), rest, value);
            let other = node.child(!bit).clone();
            with_children(node.path.clone(), node.value.clone(), bit, Some(child), other)
        }
    }
}

/// A node whose child on side `bit` is `child` and whose other child is `other`.
fn with_children(path: BitPath, value: Option<Stored>, bit: bool, child: Link, other: Link) -> Arc<TreeNode> {
    let (left, right) = if bit { (other, child) } else { (child, other) };
    TreeNode::new(path, value, left, right)
}

/// What to take away.
#[derive(Clone, Copy)]
pub(super) enum Removal {
    /// The value under the key.
    Value,
    /// Every value whose key begins with the key.
    Subtree,
}

/// The subtree without what `key` names; None when there is nothing to take away.
pub(super) fn remove(node: &Arc<TreeNode>, key: Bits<'_>, what: Removal) -> Option<Link> {
    let path = node.path.bits();
    let shared = key.common_prefix(path);
    if shared < path.len() {
        // The key leaves the trie, or ends inside the path: then all below has it as a prefix.
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

/// A node in its canonical form: without a value it has two children, else it is its only child with a
/// longer path, or nothing.
fn merged(path: BitPath, value: Option<Stored>, left: Link, right: Link) -> Link {
    match (&value, &left, &right) {
        (None, None, None) => None,
        (None, Some(child), None) => Some(lengthened(&path, false, child)),
        (None, None, Some(child)) => Some(lengthened(&path, true, child)),
        _ => Some(TreeNode::new(path, value, left, right)),
    }
}

/// `child`, which hung on side `bit` of a node with `path`, in that node's place.
fn lengthened(path: &BitPath, bit: bool, child: &TreeNode) -> Arc<TreeNode> {
    let path = BitPath::join(path.bits(), bit, child.path.bits());
    TreeNode::new(path, child.value.clone(), child.left.clone(), child.right.clone())
}
