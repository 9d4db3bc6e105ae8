//! Computes where the nodes of a chunk are in the order of the trie's bytes, to check that a chunk begins at the requested offset.

use alloc::vec::Vec;

use super::extent::Extent;

/// Left children and extents of the nodes of a chunk, by their positions in it.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// For each node the left child, if that is in the chunk, and the rest once its subtree is complete.
    nodes: Vec<(Option<usize>, Option<CompleteNode>)>,
}

/// A node whose subtree in the chunk is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompleteNode {
    pub(super) extent: Extent,
    /// Whether the left child is stored by hash.
    pub(super) left_hashed: bool,
    /// Whether the right child is stored by hash.
    pub(super) right_hashed: bool,
    /// The right child, if it is in the chunk.
    pub(super) right: Option<usize>,
}

impl Positions {
    pub(super) fn with_capacity(nodes: usize) -> Self {
        Self { nodes: Vec::with_capacity(nodes) }
    }

    /// Adds the next node, with its left child if that is in the chunk.
    pub(super) fn push(&mut self, left: Option<usize>) {
        self.nodes.push((left, None));
    }

    /// Adds the extent and the right child of a node whose subtree is complete.
    pub(super) fn set_complete(&mut self, index: usize, complete: CompleteNode) {
        if let Some((_, slot)) = self.nodes.get_mut(index) {
            *slot = Some(complete);
        }
    }

    /// The left child and the rest of a complete node.
    fn get(&self, index: usize) -> Option<(Option<usize>, CompleteNode)> {
        let (left, complete) = self.nodes.get(index)?;
        Some((*left, (*complete)?))
    }

    /// The extent of a complete node.
    pub(super) fn extent(&self, index: usize) -> Option<Extent> {
        self.get(index).map(|(_, complete)| complete.extent)
    }

    /// Whether this offset belongs to the node `wanted`, in the tree with the root `top`. The offset of a node's end belongs to that
    /// node, the offset of its start to the node before; offset 0 belongs to the first node. If both children are stored by hash
    /// and neither is in the chunk, any offset in the node's subtree is accepted. `None` if sizes contradict each other.
    pub(super) fn contains(&self, top: usize, wanted: usize, offset: u64) -> Option<bool> {
        let (mut at, mut start) = (top, 0u64);
        let mut end = self.extent(top)?.total;
        loop {
            let (left, complete) = self.get(at)?;
            // Positions are in the order of keys: those of the left subtree are lower, those of the right one higher.
            let next = match wanted.cmp(&at) {
                core::cmp::Ordering::Less => left?,
                core::cmp::Ordering::Greater => complete.right?,
                core::cmp::Ordering::Equal => {
                    let (start, end) = self.own_range(left, &complete, start, end)?;
                    return Some((start < offset && offset <= end) || (offset == 0 && start == 0));
                }
            };
            let total = self.extent(next)?.total;
            match wanted < at {
                true => end = start.checked_add(total)?,
                false => start = end.checked_sub(total)?,
            }
            at = next;
        }
    }

    /// Start and end of a node whose subtree has this start and end.
    fn own_range(
        &self,
        left: Option<usize>,
        complete: &CompleteNode,
        start: u64,
        end: u64,
    ) -> Option<(u64, u64)> {
        let own = complete.extent.own;
        let [left, right] = [(complete.left_hashed, left), (complete.right_hashed, complete.right)].map(
            |child| match child {
                (false, _) => Some(0),
                (true, index) => index.and_then(|index| self.extent(index)).map(|extent| extent.total),
            },
        );
        match (left, right) {
            (_, Some(right)) => {
                let end = end.checked_sub(right)?;
                Some((end.checked_sub(own)?, end))
            }
            (Some(left), None) => {
                let start = start.checked_add(left)?;
                Some((start, start.checked_add(own)?))
            }
            (None, None) => Some((start, end)),
        }
    }
}
