//! Which ancestors of the checkpoint are still wanted.

use alloc::vec::Vec;

/// How far down the links go, and who could not help.
#[derive(Debug, Default)]
pub(super) struct Below {
    /// The highest block still wanted, and the lowest.
    pub(super) wanted: Option<(u64, u64)>,
    pub(super) taken: Option<usize>,
    pub(super) refused: Vec<usize>,
}

impl Below {
    pub(super) fn start(&mut self, base: u64, count: u64) {
        self.wanted = base.checked_sub(1).filter(|_| count > 0).map(|top| (top, base.saturating_sub(count)));
    }

    /// What is there already, down to this block, is not wanted any more; nor can anything be added below a chain that
    /// does not reach down to its base any more.
    pub(super) fn resume(&mut self, lowest: u64) {
        self.wanted = self.wanted.and_then(|(top, last)| {
            let next = lowest.checked_sub(1).filter(|next| (last..=top).contains(next))?;
            Some((next, last))
        });
    }

    pub(super) fn release(&mut self, upstream: usize) {
        self.taken = self.taken.filter(|by| *by != upstream);
    }

    /// This upstream does not have them.
    pub(super) fn refuse(&mut self, upstream: usize) {
        if !self.refused.contains(&upstream) {
            self.refused.push(upstream);
        }
    }

    pub(super) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// Whether everything wanted is there.
    pub(super) fn is_complete(&self) -> bool {
        self.wanted.is_none()
    }
}
