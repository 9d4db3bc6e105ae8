//! One exchange with one upstream: all that a phase may touch, looked up once.

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

/// Longest pause of upstreams that did not answer while no other can be asked, in milliseconds: nothing is answered until
/// one of them is tried again.
const ALONE: u64 = 30_000;

/// An exchange with an upstream, with the chain that it is about and the other upstreams.
#[derive(Debug)]
pub(super) struct UpstreamExchange<'a> {
    /// The number of the upstream.
    pub(super) upstream: usize,
    pub(super) peer: &'a mut SyncPeer,
    /// The upstreams of lower numbers.
    pub(super) before: &'a mut [SyncPeer],
    /// The upstreams of higher numbers.
    pub(super) after: &'a mut [SyncPeer],
    pub(super) followed: &'a mut FollowedChain,
    pub(super) leases: &'a mut LeaseState,
    pub(super) options: &'a SyncOptions,
    /// In a start by work, its rule and what the upstream proposes.
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
    pub(super) fn newest(&self) -> Vec<Option<B256>> {
        self.all().map(|peer| peer.search.at).collect()
    }

    /// The height of the newest header accepted from the upstream, if that header is not on the heaviest chain.
    pub(super) fn side_branch(&self) -> Option<u64> {
        self.followed.side_branch(self.peer.search.at)
    }

    /// Milliseconds since the requests were handed out.
    fn elapsed(&self) -> u64 {
        self.now.millis.saturating_sub(self.peer.asked)
    }

    /// Begins a turn of the upstream, if one is due. Otherwise returns what to wait for.
    pub(super) fn begin(&mut self) -> Option<SyncStep> {
        if let Phase::Idle(due) | Phase::Resting(due, _) = &self.peer.phase {
            if *due > self.now.millis {
                return Some(SyncStep::Wait(due.saturating_sub(self.now.millis)));
            }
            let chain = self.followed.chain.is_some();
            self.peer.phase = match &self.proposal {
                Some((_, proposal)) if !chain || proposal.apart => Phase::Propose(AskProposal),
                _ if chain => Phase::Height(AskHeight),
                _ => Phase::Base(AskBase::new(self)),
            };
        }
        None
    }

    /// The next step of the present phase. The same requests are returned until they are answered.
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
            same @ (Phase::Idle(_) | Phase::Resting(..)) => Ok(same),
        };
        match next {
            Ok(phase) => self.peer.phase = phase,
            Err(fault) => self.rest(fault),
        }
        if let Phase::Idle(due) = &mut self.peer.phase
            && core::mem::take(&mut self.peer.hinted)
        {
            *due = 0;
        }
    }

    /// The responses to the requests of a window, out of all that have arrived. The size of the next windows follows
    /// their speed.
    pub(super) fn answers(
        &mut self,
        window: &HeaderWindow,
        responses: &mut impl Iterator<Item = UpstreamResponse>,
    ) -> Result<Vec<UpstreamResponse>, SyncFault> {
        let answers: Vec<UpstreamResponse> = responses.take(window.requests().len()).collect();
        let failed = answers.iter().find_map(RequestFailure::of_exchange).cloned();
        self.peer.search.resize(failed.is_some(), self.elapsed(), self.options.batch);
        match failed {
            // An upstream that was silent is not wrong, and pauses before the next request.
            Some(failure) => Err(SyncFault { number: window.first(), cause: SyncCause::Call(failure) }),
            None => Ok(answers),
        }
    }

    /// Puts the headers that have arrived into a window. Returns whether no more are to be requested for it.
    pub(super) fn fill(&mut self, window: &mut HeaderWindow, answers: Vec<UpstreamResponse>) -> bool {
        let in_binary = window.is_binary();
        let complete = window.take(answers, &self.followed.network);
        if in_binary {
            self.peer.source.can.headers = Some(window.was_binary());
        }
        complete
    }

    /// Records what the upstream did wrong.
    pub(super) fn note(&mut self, request: UpstreamRequest, rule: String, weight: u32) {
        self.peer.source.record.failed();
        self.peer.source.record.bad(self.now, request, rule, weight);
    }

    /// Lets the upstream rest for a while. What it was fetching is open to others.
    pub(super) fn rest(&mut self, fault: SyncFault) {
        self.followed.release(self.upstream);
        self.drop_lease();
        let lie = fault.cause.is_lie();
        let beyond = matches!(fault.cause, SyncCause::Header(ChainError::UpdateNeeded { .. }));
        // A host without room says nothing about the upstream.
        let unread = matches!(fault.cause, SyncCause::Call(RequestFailure::NoRoom));
        if !beyond && !unread {
            let params = format!(r#"["{:#x}",false]"#, fault.number);
            let request = UpstreamRequest::new("eth_getBlockByNumber", params);
            self.note(request, format!("{}", fault.cause), if lie { LIE } else { SILENT });
        }
        self.peer.search.reopen();
        // A proposal in a start by work costs thousands of headers, so it may be repeated only now and then.
        let mut costly = matches!(fault.cause, SyncCause::TooLittleWork(_));
        if let (SyncCause::Unlinked, Some((_, proposal))) = (&fault.cause, &mut self.proposal) {
            costly = self.now.millis < proposal.moved.saturating_add(NEXT_PROPOSAL);
            proposal.apart = true;
        }
        let doublings = self.peer.source.record.in_row.saturating_sub(1).min(10);
        let pause = self.options.retry.saturating_mul(1 << doublings);
        let pause = if costly { pause.max(NEXT_PROPOSAL) } else { pause };
        // A liar rests for long if there are other upstreams; the only one is tried again soon.
        let pause = if lie && self.has_others() {
            self.options.longest_retry
        } else {
            pause.max(requested_pause(&fault.cause))
        };
        let until = self.now.plus(pause.min(self.options.longest_retry));
        self.peer.phase = Phase::Resting(until, fault);
        if self.all().all(SyncPeer::is_resting) {
            self.shorten_rests();
            // The backfill is tried again with the upstreams that did not have its blocks.
            self.followed.backfill.forget_refusals();
        }
    }

    /// Ends the rests of upstreams that did not answer after [`ALONE`] at the latest, or after the pause that they asked for.
    fn shorten_rests(&mut self) {
        let latest = self.now;
        for peer in self.all_mut() {
            let Phase::Resting(until, fault) = &mut peer.phase else { continue };
            if let SyncCause::Call(
                RequestFailure::Busy { .. } | RequestFailure::Transport(_) | RequestFailure::NoRoom,
            ) = fault.cause
            {
                *until = (*until).min(latest.plus(requested_pause(&fault.cause).max(ALONE)));
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
