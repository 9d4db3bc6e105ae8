//! One exchange of requests and responses with one upstream: the parts of the machine that a phase may change. A window is a header
//! window here (`header_window.rs`).

use alloc::{format, string::String, vec::Vec};
use core::iter::once;

use super::{
    followed::FollowedChain,
    lease_state::LeaseState,
    options::{SyncOptions, SyncStep},
    peer::SyncPeer,
    phase::{AskBase, AskHeight, AskProposal, Phase},
    proposal::Election,
};
use crate::{
    consensus::ChainError,
    light::{
        bitcoin::BitcoinFollower,
        clock::Now,
        fault::{SyncCause, SyncFault},
        header_window::HeaderWindow,
        record::{LIE, SILENT},
        upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
    },
    types::B256,
};

/// Pause before an upstream may propose a start again after one that was judged too light, in milliseconds: a proposal
/// costs thousands of headers.
const NEXT_PROPOSAL: u64 = 60_000;

/// Longest pause of upstreams that did not respond while all upstreams rest, in milliseconds: until one of them is tried again, the
/// client gets no data.
const LONGEST_COMMON_REST: u64 = 30_000;

/// An exchange with an upstream, with the chain that it is about and the other upstreams.
#[derive(Debug)]
pub(super) struct UpstreamExchange<'a> {
    /// The number of the upstream.
    pub(super) upstream: usize,
    /// The state of the upstream.
    pub(super) peer: &'a mut SyncPeer,
    /// The upstreams of lower numbers.
    pub(super) before: &'a mut [SyncPeer],
    /// The upstreams of higher numbers.
    pub(super) after: &'a mut [SyncPeer],
    /// The chain that the exchange is about: the one that all upstreams extend or, in a trial, that of one upstream.
    pub(super) followed: &'a mut FollowedChain,
    pub(super) leases: &'a mut LeaseState,
    pub(super) options: &'a SyncOptions,
    /// In a start by work, the rule of the election and the upstream's proposal.
    pub(super) proposal: Option<Election<'a>>,
    /// The Bitcoin chain that the client follows.
    pub(super) bitcoin: Option<&'a BitcoinFollower>,
    pub(super) now: Now,
}

impl UpstreamExchange<'_> {
    /// All upstreams, in the host's order.
    pub(super) fn all(&self) -> impl Iterator<Item = &SyncPeer> {
        self.before.iter().chain(once(&*self.peer)).chain(self.after.iter())
    }

    /// All upstreams, in the host's order.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut SyncPeer> {
        self.before.iter_mut().chain(once(&mut *self.peer)).chain(self.after.iter_mut())
    }

    /// Whether there is another upstream.
    pub(super) fn has_others(&self) -> bool {
        !self.before.is_empty() || !self.after.is_empty()
    }

    /// The hash of the newest header accepted from each upstream.
    pub(super) fn newest_hashes(&self) -> Vec<Option<B256>> {
        self.all().map(|peer| peer.search.newest_hash).collect()
    }

    /// The height of the newest header accepted from the upstream, if that header is not on the heaviest chain.
    pub(super) fn side_branch(&self) -> Option<u64> {
        self.followed.side_branch(self.peer.search.newest_hash)
    }

    /// Milliseconds since the requests were handed out.
    fn elapsed(&self) -> u64 {
        self.now.millis.saturating_sub(self.peer.asked)
    }

    /// Begins a phase of requests, if the upstream's pause or rest is over. Otherwise returns the time to wait.
    pub(super) fn begin(&mut self) -> Option<SyncStep> {
        if let Phase::Idle(due) | Phase::Resting(due, _) = &self.peer.phase {
            if *due > self.now.millis {
                return Some(SyncStep::Wait(due.saturating_sub(self.now.millis)));
            }
            let has_chain = self.followed.chain.is_some();
            self.peer.phase = match &self.proposal {
                Some((_, proposal)) if !has_chain || proposal.apart => Phase::Propose(AskProposal),
                _ if has_chain => Phase::Height(AskHeight),
                _ => Phase::Base(AskBase::new(self)),
            };
        }
        None
    }

    /// The next step of the present phase. The same requests are returned until their responses have arrived.
    pub(super) fn step(&mut self) -> SyncStep {
        self.peer.asked = self.now.millis;
        SyncStep::Fetch(match &self.peer.phase {
            Phase::Height(ask) => ask.requests(),
            Phase::Base(ask) => ask.requests(),
            Phase::Backfill(ask) => ask.requests(),
            Phase::Above(ask) => ask.requests(),
            Phase::Uncles(ask) => ask.requests(),
            Phase::Propose(_) => return AskProposal.step(self),
            Phase::Idle(due) | Phase::Resting(due, _) => {
                return SyncStep::Wait(due.saturating_sub(self.now.millis));
            }
        })
    }

    /// Takes the responses to the requests of the last step, in order.
    pub(super) fn feed(&mut self, responses: Vec<UpstreamResponse>) {
        let phase = core::mem::replace(&mut self.peer.phase, Phase::Idle(self.now.millis));
        if responses.iter().all(Result::is_ok) {
            self.peer.source.record.good(self.elapsed());
        }
        let next = match phase {
            Phase::Height(ask) => ask.feed(&responses, self),
            Phase::Base(ask) => ask.feed(responses, self),
            Phase::Backfill(ask) => ask.feed(responses, self),
            Phase::Above(ask) => ask.feed(responses, self),
            Phase::Uncles(ask) => ask.feed(responses, self),
            Phase::Propose(ask) => ask.feed(responses, self),
            // No requests are open in these phases.
            same @ (Phase::Idle(_) | Phase::Resting(..)) => Ok(same),
        };
        match next {
            Ok(phase) => self.peer.phase = phase,
            Err(fault) => self.rest(fault),
        }
        if let Phase::Idle(due) = &mut self.peer.phase
            && core::mem::take(&mut self.peer.hinted)
        {
            // The upstream announced something new during this exchange, so the pause is left out.
            *due = 0;
        }
    }

    /// The responses to the requests of a window, which are the first ones of `responses`. Their time sets the size of the next
    /// windows.
    pub(super) fn window_responses(
        &mut self,
        window: &HeaderWindow,
        responses: &mut impl Iterator<Item = UpstreamResponse>,
    ) -> Result<Vec<UpstreamResponse>, SyncFault> {
        let of_window: Vec<UpstreamResponse> = responses.take(window.requests().len()).collect();
        let failed = of_window.iter().find_map(RequestFailure::of_exchange).cloned();
        self.peer.search.resize(failed.is_some(), self.elapsed(), self.options.batch);
        match failed {
            // An upstream that was silent is not wrong, and pauses before the next request.
            Some(failure) => Err(SyncFault { number: window.first(), cause: SyncCause::Call(failure) }),
            None => Ok(of_window),
        }
    }

    /// Puts the headers that have arrived into a window. Returns whether no more are to be requested for it.
    pub(super) fn fill(&mut self, window: &mut HeaderWindow, responses: Vec<UpstreamResponse>) -> bool {
        let in_binary = window.is_binary();
        let complete = window.take(responses, &self.followed.network);
        if in_binary {
            self.peer.source.can.headers = Some(window.was_binary());
        }
        complete
    }

    /// Records a failure of the upstream, with the rule that it broke and the demerits for it.
    pub(super) fn note(&mut self, request: UpstreamRequest, rule: String, weight: u32) {
        self.peer.source.record.failed();
        self.peer.source.record.bad(self.now, request, rule, weight);
    }

    /// Lets the upstream rest for a while, because of a fault. Other upstreams may take over its open fetches.
    pub(super) fn rest(&mut self, fault: SyncFault) {
        self.followed.release(self.upstream);
        self.drop_lease();
        let lie = fault.cause.is_lie();
        // Two causes are not the upstream's fault: this program does not know the rules of a newer header, or the host had no memory
        // for the response.
        let is_too_new = matches!(fault.cause, SyncCause::Header(ChainError::UpdateNeeded { .. }));
        let is_unread = matches!(fault.cause, SyncCause::Call(RequestFailure::BudgetUsedUp));
        if !is_too_new && !is_unread {
            let params = format!(r#"["{:#x}",false]"#, fault.number);
            let request = UpstreamRequest::new("eth_getBlockByNumber", params);
            self.note(request, format!("{}", fault.cause), if lie { LIE } else { SILENT });
        }
        self.peer.search.reopen();
        // A proposal in a start by work costs thousands of headers, so it may be repeated only now and then.
        let mut is_costly = matches!(fault.cause, SyncCause::TooLittleWork(_));
        if let (SyncCause::Unlinked, Some((_, proposal))) = (&fault.cause, &mut self.proposal) {
            is_costly = self.now.millis < proposal.last_progress.saturating_add(NEXT_PROPOSAL);
            proposal.apart = true;
        }
        // Ten doublings of the default pause exceed the longest pause by far, so more are not needed.
        let doublings = self.peer.source.record.in_row.saturating_sub(1).min(10);
        let pause = self.options.retry.saturating_mul(1 << doublings);
        let pause = if is_costly { pause.max(NEXT_PROPOSAL) } else { pause };
        // An upstream that lied rests for long if there are others; an only upstream is tried again soon.
        let pause = if lie && self.has_others() {
            self.options.longest_retry
        } else {
            pause.max(requested_pause(&fault.cause))
        };
        let until = self.now.plus(pause.min(self.options.longest_retry));
        self.peer.phase = Phase::Resting(until, fault);
        if self.all().all(SyncPeer::is_resting) {
            self.shorten_rests();
            // Upstreams that did not have the blocks of the backfill are asked for them again.
            self.followed.backfill.forget_refusals();
        }
    }

    /// Ends the rests of upstreams that did not respond after [`LONGEST_COMMON_REST`] at the latest, or after the pause that they asked
    /// for.
    fn shorten_rests(&mut self) {
        let now = self.now;
        for peer in self.all_mut() {
            let Phase::Resting(until, fault) = &mut peer.phase else { continue };
            if let SyncCause::Call(
                RequestFailure::Busy { .. } | RequestFailure::Transport(_) | RequestFailure::BudgetUsedUp,
            ) = fault.cause
            {
                *until = (*until).min(now.plus(requested_pause(&fault.cause).max(LONGEST_COMMON_REST)));
            }
        }
    }
}

/// The pause that an upstream asked for, in milliseconds.
fn requested_pause(cause: &SyncCause) -> u64 {
    match cause {
        SyncCause::Call(RequestFailure::Busy { seconds: Some(seconds) }) => seconds.saturating_mul(1_000),
        _ => 0,
    }
}
