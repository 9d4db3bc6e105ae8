//! The phase that fetches ancestors of the checkpoint, which are accepted because the checkpoint's hash commits to them. The fork
//! detection data (RSKIP-110) of the first blocks above the checkpoint is compared with them. A window is a header window here
//! (`header_window.rs`).

use alloc::vec::Vec;

use super::{
    exchange::UpstreamExchange,
    phase::{AskAbove, AskBackfill, AskHeight, NextPhase, Phase},
};
use crate::{
    light::{
        fault::{SyncCause, SyncFault},
        header_batch::MAX_BATCH_HEADERS,
        header_window::HeaderWindow,
        upstream::UpstreamResponse,
    },
    types::SealedHeader,
};

impl AskBackfill {
    /// A window below the checkpoint, if the backfill needs one and this upstream may have it.
    pub(super) fn new(exchange: &mut UpstreamExchange<'_>) -> Option<Self> {
        let backfill = &mut exchange.followed.backfill;
        if let Some(chain) = &exchange.followed.chain {
            backfill.resume(chain.view().lowest());
        }
        let (top, lowest) = backfill.wanted?;
        if backfill.fetched_by.is_some() || backfill.refused.contains(&exchange.upstream) {
            return None;
        }
        let background = false;
        Some(Self::window(exchange, top, lowest, background))
    }

    /// A window of the ancestors that are fetched in the background, below those in memory.
    pub(super) fn in_background(exchange: &mut UpstreamExchange<'_>) -> Option<Self> {
        let followed = &mut *exchange.followed;
        let backfill = &mut followed.backfill;
        let lowest = backfill.background.filter(|_| followed.synced_once && backfill.is_complete())?;
        let lowest_in_memory = followed.chain.as_ref()?.view().lowest();
        let Some(top) = lowest_in_memory.checked_sub(1).filter(|top| *top >= lowest) else {
            backfill.background = None;
            return None;
        };
        if backfill.fetched_by.is_some() || backfill.refused.contains(&exchange.upstream) {
            return None;
        }
        let background = true;
        Some(Self::window(exchange, top, lowest, background))
    }

    /// The highest window of the ancestors from `top` down to `lowest`.
    fn window(exchange: &mut UpstreamExchange<'_>, top: u64, lowest: u64, background: bool) -> Self {
        exchange.followed.backfill.fetched_by = Some(exchange.upstream);
        let size = (exchange.options.batch as u64).clamp(1, MAX_BATCH_HEADERS);
        let first = top.saturating_sub(size.saturating_sub(1)).max(lowest);
        let window = HeaderWindow::new(first, top, top);
        Self { window: window.in_binary(exchange.peer.source.may_give_binary()), background }
    }

    /// Adds the ancestors below the chain.
    pub(super) fn feed(
        mut self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        let window_responses = exchange.window_responses(&self.window, &mut responses.into_iter())?;
        if !exchange.fill(&mut self.window, window_responses) {
            return Ok(Phase::Backfill(self));
        }
        exchange.followed.backfill.release(exchange.upstream);
        let first = self.window.first();
        let headers = match self.window.into_headers() {
            (headers, None) => headers,
            (_, Some((number, cause))) if cause.is_lie() => return Err(SyncFault { number, cause }),
            // An honest upstream need not keep old blocks.
            _ => {
                exchange.followed.backfill.refuse(exchange.upstream);
                return Ok(Phase::Above(AskAbove::new(exchange)));
            }
        };
        let Some(chain) = &mut exchange.followed.chain else { return Ok(Phase::Height(AskHeight)) };
        for found in headers.into_iter().rev() {
            let header = found.header.into_header();
            let number = header.number;
            if let Err(error) = chain.prepend(header) {
                exchange.followed.backfill.refuse(exchange.upstream);
                // An elected base is not trusted, and an honest upstream may have other blocks below it.
                let cause =
                    if exchange.proposal.is_some() { SyncCause::Unlinked } else { SyncCause::Header(error) };
                return Err(SyncFault { number, cause });
            }
        }
        if self.background {
            // A store writes all pages from the lowest change on, so these headers are reported as changed once all have arrived.
            if exchange.followed.backfill.background.is_none_or(|lowest| first <= lowest) {
                exchange.followed.backfill.background = None;
                exchange.followed.touch(first);
            }
            return Ok(Phase::Height(AskHeight));
        }
        exchange.followed.touch(first);
        let backfill = &mut exchange.followed.backfill;
        let lowest = backfill.wanted.map_or(first, |(_, lowest)| lowest);
        backfill.wanted = first.checked_sub(1).filter(|_| first > lowest).map(|top| (top, lowest));
        if backfill.is_complete() {
            compare_fork_detection(exchange)?;
        }
        Ok(Phase::Height(AskHeight))
    }
}

/// Compares the fork detection data of headers that were accepted before the backfill was complete. If a header's data is wrong, the
/// chain starts again at the checkpoint: with all ancestors known, the branch is refused at its first wrong header.
fn compare_fork_detection(exchange: &mut UpstreamExchange<'_>) -> Result<(), SyncFault> {
    let Some(chain) = &mut exchange.followed.chain else { return Ok(()) };
    let base = chain.view().base().number;
    if chain.head().number == base || chain.recheck_fork_detection().is_ok() {
        return Ok(());
    }
    let base_and_below: Vec<SealedHeader> = (chain.view().lowest()..=base)
        .rev()
        .filter_map(|number| chain.by_number(number).map(|header| header.sealed().clone()))
        .collect();
    let fault = |error| SyncFault { number: base, cause: SyncCause::Header(error) };
    exchange.followed.restart(base_and_below).map_err(fault)?;
    exchange.all_mut().for_each(|peer| peer.search.reopen());
    exchange.drop_lease();
    Ok(())
}
