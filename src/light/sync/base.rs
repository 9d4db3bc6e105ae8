//! The phase that fetches the checkpoint's own header, in a header window (`header_window.rs`) of one block.

use alloc::vec::Vec;

use super::{
    exchange::UpstreamExchange,
    phase::{AskBase, AskHeight, NextPhase, Phase},
};
use crate::{
    light::{
        fault::{SyncCause, SyncFault},
        header_window::HeaderWindow,
        upstream::UpstreamResponse,
    },
    types::SealedHeader,
};

impl AskBase {
    pub(super) fn new(exchange: &UpstreamExchange<'_>) -> Self {
        let window = HeaderWindow::single(exchange.followed.checkpoint.number);
        Self { window: window.in_binary(exchange.peer.source.may_give_binary()) }
    }

    /// Starts the chain at the header that has arrived.
    pub(super) fn feed(
        mut self,
        responses: Vec<UpstreamResponse>,
        exchange: &mut UpstreamExchange<'_>,
    ) -> NextPhase {
        let window_responses = exchange.window_responses(&self.window, &mut responses.into_iter())?;
        if !exchange.fill(&mut self.window, window_responses) {
            return Ok(Phase::Base(self));
        }
        let number = exchange.followed.checkpoint.number;
        let found = only_header(self.window).map_err(|cause| SyncFault { number, cause })?;
        exchange.followed.start_at(found, exchange.options)?;
        Ok(Phase::Height(AskHeight))
    }
}

/// The header of a window of one block, or why there is none.
pub(super) fn only_header(window: HeaderWindow) -> Result<SealedHeader, SyncCause> {
    let (found, missing) = window.into_headers();
    let cause = missing.map_or(SyncCause::Missing, |(_, cause)| cause);
    Ok(found.into_iter().next().ok_or(cause)?.header.into_header())
}
