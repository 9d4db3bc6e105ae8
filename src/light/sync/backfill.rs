//! Backfill: ancestors of the checkpoint, accepted by the hash links that lead down from it. Fork detection data of the
//! first blocks above the checkpoint commit to them.

use alloc::vec::Vec;

use super::{
    peer::{Goal, Phase, Work},
    state::HeaderSync,
};
use crate::{
    light::{
        fault::{SyncCause, SyncFault},
        header_batch::MAX_BATCH_HEADERS,
        header_window::HeaderWindow,
    },
    types::SealedHeader,
};

impl HeaderSync {
    /// A window below the checkpoint, if the backfill needs one and this upstream may have it.
    pub(super) fn backfill_work(&mut self, upstream: usize) -> Option<Phase> {
        if let Some(chain) = &self.line.chain {
            self.line.backfill.resume(chain.view().lowest());
        }
        let (top, lowest) = self.line.backfill.wanted?;
        if self.line.backfill.taken.is_some() || self.line.backfill.refused.contains(&upstream) {
            return None;
        }
        self.line.backfill.taken = Some(upstream);
        let size = (self.options.batch as u64).clamp(1, MAX_BATCH_HEADERS);
        let first = top.saturating_sub(size.saturating_sub(1)).max(lowest);
        let window = HeaderWindow::new(first, top, top).in_binary(self.binary(upstream));
        Some(Work::headers(Goal::Backfill, window))
    }

    pub(super) fn feed_backfill(
        &mut self,
        upstream: usize,
        window: HeaderWindow,
    ) -> Result<Phase, SyncFault> {
        self.line.backfill.release(upstream);
        let first = window.first();
        let headers = match window.into_headers() {
            (headers, None) => headers,
            (_, Some((number, cause))) if cause.is_lie() => return Err(SyncFault { number, cause }),
            // The upstream keeps no old blocks. That is allowed.
            _ => {
                self.line.backfill.refuse(upstream);
                return Ok(self.next_work(upstream));
            }
        };
        let by_work = self.is_by_work();
        let Some(chain) = &mut self.line.chain else { return Ok(Phase::Height) };
        for found in headers.into_iter().rev() {
            let header = found.header.into_header();
            let number = header.number;
            if let Err(error) = chain.prepend(header) {
                self.line.backfill.refuse(upstream);
                // A base that was elected is not trusted: below it, an honest upstream may have other blocks.
                let cause = if by_work { SyncCause::Unlinked } else { SyncCause::Header(error) };
                return Err(SyncFault { number, cause });
            }
        }
        self.line.touch(first);
        let lowest = self.line.backfill.wanted.map_or(first, |(_, lowest)| lowest);
        self.line.backfill.wanted = first.checked_sub(1).filter(|_| first > lowest).map(|top| (top, lowest));
        if self.line.backfill.is_complete() {
            self.compare_fork_detection(upstream)?;
        }
        Ok(Phase::Height)
    }

    /// Compares the fork detection data of headers that were accepted before the backfill was complete. If one is
    /// wrong, the chain starts again: with the backfill in place, the branch is refused at its first wrong header.
    fn compare_fork_detection(&mut self, upstream: usize) -> Result<(), SyncFault> {
        let Some(chain) = &mut self.line.chain else { return Ok(()) };
        let base = chain.view().base().number;
        if chain.head().number == base || chain.recheck_fork_detection().is_ok() {
            return Ok(());
        }
        let below: Vec<SealedHeader> = (chain.view().lowest()..=base)
            .rev()
            .filter_map(|number| chain.by_number(number).map(|header| header.sealed().clone()))
            .collect();
        self.line
            .restart(below)
            .map_err(|error| SyncFault { number: base, cause: SyncCause::Header(error) })?;
        self.peers.iter_mut().for_each(|peer| peer.search.reopen());
        self.drop_lease(upstream);
        Ok(())
    }
}
