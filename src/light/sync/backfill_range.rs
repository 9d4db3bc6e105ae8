//! The ancestors of the checkpoint that the backfill still needs.

use alloc::vec::Vec;

/// The state of the backfill.
#[derive(Debug, Default)]
pub(super) struct Backfill {
    /// The highest and the lowest block number that are still needed.
    pub(super) wanted: Option<(u64, u64)>,
    /// The lowest block that is fetched behind, while upstreams have nothing newer to show.
    pub(super) behind: Option<u64>,
    /// The upstream that is fetching a window now.
    pub(super) taken: Option<usize>,
    /// Upstreams that do not have the blocks.
    pub(super) refused: Vec<usize>,
}

impl Backfill {
    pub(super) fn start(&mut self, base: u64, count: u64) {
        self.wanted = base.checked_sub(1).filter(|_| count > 0).map(|top| (top, base.saturating_sub(count)));
    }

    /// Skips the blocks that the chain holds already, down to `lowest`. Ends the backfill if the chain no longer
    /// reaches down to its base, because nothing can be added below it then.
    pub(super) fn resume(&mut self, lowest: u64) {
        self.wanted = self.wanted.and_then(|(top, last)| {
            let next = lowest.checked_sub(1).filter(|next| (last..=top).contains(next))?;
            Some((next, last))
        });
    }

    pub(super) fn release(&mut self, upstream: usize) {
        self.taken = self.taken.filter(|by| *by != upstream);
    }

    /// Forgets what an upstream refused: another source answers in its place.
    pub(super) fn readmit(&mut self, upstream: usize) {
        self.refused.retain(|by| *by != upstream);
    }

    /// Records that this upstream does not have the blocks.
    pub(super) fn refuse(&mut self, upstream: usize) {
        if !self.refused.contains(&upstream) {
            self.refused.push(upstream);
        }
    }

    pub(super) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// Whether the backfill needs no more blocks.
    pub(super) fn is_complete(&self) -> bool {
        self.wanted.is_none()
    }
}
