//! The phases of requests to an upstream: a type for each, with its requests (those of a proposal are in `propose.rs`). Each type
//! names the file that takes its responses and chooses the next phase. A phase's `window` is the range of headers that it fetches
//! from this upstream; it is not the window that a client stores.

use alloc::vec::Vec;

use crate::light::{
    fault::SyncFault, header_window::HeaderWindow, upstream::UpstreamRequest, upstream_fetch::UpstreamFetch,
};

/// The phase of an upstream's machine. Times are on the monotonic clock, in milliseconds.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing to do until this time.
    Idle(u64),
    /// Ask for the upstream's height.
    Height(AskHeight),
    /// Fetch the checkpoint's own header.
    Base(AskBase),
    /// Fetch ancestors of the checkpoint.
    Backfill(AskBackfill),
    /// Fetch headers above the checkpoint.
    Above(AskAbove),
    /// Fetch uncles alone.
    Uncles(AskUncles),
    /// Ask for the upstream's proposal, where no checkpoint is trusted and work decides about the start.
    Propose(AskProposal),
    /// The upstream failed with this fault, and is left alone until this time.
    Resting(u64, SyncFault),
}

/// The phase that follows the responses to a phase's requests, or why the upstream is to rest.
pub(super) type NextPhase = Result<Phase, SyncFault>;

/// Asks for the upstream's height (`height.rs`).
#[derive(Debug)]
pub(super) struct AskHeight;

/// Fetches the checkpoint's own header (`base.rs`).
#[derive(Debug)]
pub(super) struct AskBase {
    pub(super) window: HeaderWindow,
}

/// Fetches ancestors of the checkpoint (`backfill.rs`).
#[derive(Debug)]
pub(super) struct AskBackfill {
    pub(super) window: HeaderWindow,
    /// Whether the ancestors are fetched in the background, after the head was reached.
    pub(super) background: bool,
}

/// Fetches headers above the checkpoint, and uncles of earlier blocks (`above.rs`).
#[derive(Debug)]
pub(super) struct AskAbove {
    pub(super) window: HeaderWindow,
    pub(super) uncles: AskUncles,
}

/// Fetches uncles of some blocks (`uncles.rs`).
#[derive(Debug, Default)]
pub(super) struct AskUncles {
    pub(super) fetches: Vec<UpstreamFetch>,
}

/// Requests what the upstream's proposal needs next (`propose.rs`). A proposal survives a rest of the upstream, so it is not part of
/// the phase ([`Proposal`](super::proposal::Proposal)).
#[derive(Debug)]
pub(super) struct AskProposal;

impl AskHeight {
    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        alloc::vec![UpstreamRequest::new("eth_blockNumber", "[]".into())]
    }
}

impl AskBase {
    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        self.window.requests()
    }
}

impl AskBackfill {
    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        self.window.requests()
    }
}

impl AskAbove {
    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        let mut requests = self.window.requests();
        requests.extend(self.uncles.requests());
        requests
    }
}

impl AskUncles {
    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        let open = self.fetches.iter().filter(|fetch| !fetch.is_complete());
        open.flat_map(|fetch| fetch.requests().iter().cloned()).collect()
    }
}
