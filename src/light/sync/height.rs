//! The phase that asks for an upstream's height.

use super::{
    exchange::UpstreamExchange,
    phase::{AskAbove, AskBackfill, AskHeight, AskUncles, NextPhase, Phase},
};
use crate::light::{
    fault::{SyncCause, SyncFault},
    prove,
    upstream::UpstreamResponse,
};

impl AskHeight {
    /// Notes the height and chooses what to fetch next.
    pub(super) fn feed(
        self,
        responses: &[UpstreamResponse],
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        let head = exchange.followed.head_number();
        let height = self.height(responses).map_err(|cause| SyncFault { number: head, cause })?;
        let (base, branch) = (exchange.followed.checkpoint.number, exchange.side_branch());
        exchange.peer.source.announced = Some(height);
        exchange.peer.search.reopen();
        exchange.peer.search.cursor = match branch {
            // The upstream continues along its own branch.
            Some(number) if number <= height => number,
            // An upstream that is no higher than our head is asked for its block at that height: it may be on another
            // branch.
            _ => head.min(height).saturating_sub(1).max(base),
        };
        if let Some(ask) = AskBackfill::new(exchange) {
            return Ok(Phase::Backfill(ask));
        }
        // Far below the head, only the upstream with the lease fetches headers; this one fetches uncles or waits.
        if exchange.is_bulk(height) && !exchange.take_lease() {
            return Ok(AskUncles::default().or_pause(exchange));
        }
        Ok(Phase::Above(AskAbove::new(exchange)))
    }

    /// The height in the response to [`Self::requests`].
    pub(super) fn height(&self, responses: &[UpstreamResponse]) -> Result<u64, SyncCause> {
        match responses.first() {
            Some(Ok(raw)) => prove::quantity(raw).ok_or(SyncCause::BadHeight),
            Some(Err(failure)) => Err(SyncCause::Call(failure.clone())),
            None => Err(SyncCause::Missing),
        }
    }
}
