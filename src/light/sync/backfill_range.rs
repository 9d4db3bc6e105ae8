//! The ancestors of the checkpoint that the backfill still needs, and the upstreams that may fetch them.

use alloc::vec::Vec;

/// The state of the backfill.
#[derive(Debug, Default)]
pub(super) struct Backfill {
    /// The highest and the lowest block number that are still needed.
    pub(super) wanted: Option<(u64, u64)>,
    /// The lowest block that is fetched in the background, while upstreams have no newer headers to show; `None` if nothing is.
    pub(super) background: Option<u64>,
    /// The upstream that is fetching a window now.
    pub(super) fetched_by: Option<usize>,
    /// Upstreams that do not have the blocks.
    pub(super) refused: Vec<usize>,
}

impl Backfill {
    /// Begins to fetch `count` ancestors of the block `base`.
    pub(super) fn start(&mut self, base: u64, count: u64) {
        self.wanted = base.checked_sub(1).filter(|_| count > 0).map(|top| (top, base.saturating_sub(count)));
    }

    /// Skips the blocks that the chain has already, down to `lowest`. Ends the backfill if the chain no longer
    /// reaches down to its base, because no header can be added below it then.
    pub(super) fn resume(&mut self, lowest: u64) {
        self.wanted = self.wanted.and_then(|(top, last)| {
            let next = lowest.checked_sub(1).filter(|next| (last..=top).contains(next))?;
            Some((next, last))
        });
    }

    /// Lets others fetch the window that this upstream was fetching.
    pub(super) fn release(&mut self, upstream: usize) {
        self.fetched_by = self.fetched_by.filter(|by| *by != upstream);
    }

    /// Asks this upstream again, because another source answers in its place.
    pub(super) fn readmit(&mut self, upstream: usize) {
        self.refused.retain(|by| *by != upstream);
    }

    /// Records that this upstream does not have the blocks.
    pub(super) fn refuse(&mut self, upstream: usize) {
        if !self.refused.contains(&upstream) {
            self.refused.push(upstream);
        }
    }

    /// Asks all upstreams again.
    pub(super) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// Whether the backfill needs no more blocks.
    pub(super) fn is_complete(&self) -> bool {
        self.wanted.is_none()
    }
}
