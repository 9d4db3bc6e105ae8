//! Runs one fetch against several upstreams: the best first, the next when one fails, and all of them before a fact
//! counts as absent.

use alloc::{boxed::Box, collections::VecDeque, string::ToString, sync::Arc, vec::Vec};

use super::{
    fact_store::{FactStore, KnownFacts, Location},
    pinned_head::PinnedHead,
    plan, prove,
    sync::Observation,
    upstream::RequestFailure,
    upstream_fetch::{AttemptFailure, Cause, FactFailure, FetchTarget, METHOD_NOT_FOUND, UpstreamFetch},
};
use crate::{state::Fact, types::BlockRef};

/// Number of blocks below the head whose states every upstream with states should have. Upstreams may have deleted older states, so
/// a failure about those is no fault.
const NEW_STATES: u64 = 64;

/// The state of a fetch after [`Fetch::settle`].
#[derive(Debug)]
pub enum FetchOutcome {
    /// The proven facts, and the upstreams that were not asked, best first.
    Proven(Box<FactStore>, Vec<usize>),
    /// The fetch has more requests: in another form, or to another upstream.
    Again(Box<Fetch>),
    /// No upstream could prove the fact.
    Failed(FactFailure),
}

/// A fetch and the upstreams that are still to be asked.
#[derive(Debug)]
pub struct Fetch {
    /// The fetch for the present upstream.
    pub current: UpstreamFetch,
    /// The upstreams that were not asked yet, best first.
    others: VecDeque<usize>,
    /// The facts that state an absence, if an upstream has reported one: the fact does not exist, or the transaction is pending.
    absent: Option<FactStore>,
    /// A fault of the present upstream, which is reported unless the upstream proves the fact in another form.
    doubt: Option<Observation>,
    /// Missing responses about data that only a caller says exists, which count as faults if another upstream proves the data.
    silent: Vec<Observation>,
    /// The failed attempts at earlier upstreams.
    failures: Vec<AttemptFailure>,
}

impl Fetch {
    /// A fetch that asks the upstreams in `roster`, best first.
    pub fn new(mut current: UpstreamFetch, roster: &[usize]) -> Self {
        let mut others: VecDeque<usize> = roster.iter().copied().collect();
        // A roster is never empty, because a client has at least one upstream.
        current.upstream = others.pop_front().unwrap_or(0);
        Self { current, others, absent: None, doubt: None, silent: Vec::new(), failures: Vec::new() }
    }

    /// The upstream that may answer the present requests instead: the next one, unless it rests. `None` while the requests ask the
    /// present upstream for another form of a doubtful response, because only that upstream can resolve the doubt.
    pub fn spare(&self, pinned: &PinnedHead) -> Option<usize> {
        let next = self.others.front().copied().filter(|next| !pinned.rests(*next));
        next.filter(|_| self.doubt.is_none())
    }

    /// Notes that the spare upstream answers the present requests. The slow one is asked next, if the answer of the spare fails.
    pub fn use_spare(&mut self) {
        if let Some(spare) = self.others.pop_front() {
            self.others.push_front(core::mem::replace(&mut self.current.upstream, spare));
        }
    }

    /// Proves the responses, or moves on to another form of the request or to another upstream. Appends observations about the
    /// upstreams to `seen`.
    pub fn settle(
        mut self,
        pinned: &PinnedHead,
        known: &KnownFacts<'_>,
        seen: &mut Vec<Observation>,
    ) -> FetchOutcome {
        let (upstream, request) = (self.current.upstream, self.current.requests().first().cloned());
        let observation = |outcome| request.map(|request| Observation { upstream, request, outcome });
        match prove::responses(&self.current, pinned.proof_context(), known) {
            Ok(facts) if is_absence(&self.current.target, &facts) => {
                // A pending transaction takes precedence over an absent one.
                let is_pending = |location: &Arc<Location>| matches!(**location, Location::Pending(_));
                if self.absent.is_none() || facts.locations.values().any(is_pending) {
                    self.absent = Some(facts);
                }
                self.next_upstream(pinned, known)
            }
            Ok(facts) => {
                seen.append(&mut self.silent);
                seen.extend(observation(Ok(state_of(&self.current.target))));
                FetchOutcome::Proven(Box::new(facts), self.others.into())
            }
            Err(cause) => {
                let cause = self.current.blame(cause);
                match observation(Err(cause.clone())) {
                    silence if is_no_response(&cause) && !self.must_have(pinned) => {
                        self.silent.extend(silence)
                    }
                    _ if self.excuses(&cause, pinned) => {}
                    // JSON hides part of some headers. Another form of the request decides whether this is a fault.
                    doubt if matches!(cause, Cause::Hidden(_)) => self.doubt = self.doubt.or(doubt),
                    observed => seen.extend(observed),
                }
                let mut parts = plan::transactions(&self.current.target, known);
                parts.extend(prove::uncle_hashes(&self.current));
                match self.current.next_attempt(cause, &parts) {
                    Ok(()) => FetchOutcome::Again(Box::new(self)),
                    Err(failure) => {
                        let name = |attempt: AttemptFailure| AttemptFailure {
                            name: pinned.name_in_errors(attempt.upstream),
                            ..attempt
                        };
                        self.failures.extend(failure.attempts.into_iter().map(name));
                        seen.extend(self.doubt.take());
                        self.next_upstream(pinned, known)
                    }
                }
            }
        }
    }

    /// Begins at the next upstream; without one, returns the absence or the failure.
    fn next_upstream(mut self, pinned: &PinnedHead, known: &KnownFacts<'_>) -> FetchOutcome {
        // An absence needs only the healthy upstreams: a resting one may not respond for a long time.
        let next = self.others.pop_front().filter(|next| self.absent.is_none() || !pinned.rests(*next));
        let Some(upstream) = next else {
            let failure = FactFailure { target: self.current.target.to_string(), attempts: self.failures };
            return self.absent.map_or(FetchOutcome::Failed(failure), |facts| {
                FetchOutcome::Proven(Box::new(facts), Vec::new())
            });
        };
        let transactions = plan::transactions(&self.current.target, known);
        self.current = self.current.for_upstream(upstream, &transactions);
        self.doubt = None;
        FetchOutcome::Again(Box::new(self))
    }

    /// Whether an honest upstream may give this response. An honest upstream need not have data that only a caller says exists,
    /// such as an old state or a block off the chain; it answers a request for such data by number or by transaction with the data
    /// of its own chain. If the request names the block's hash, an honest upstream gives no false response.
    fn excuses(&self, cause: &Cause, pinned: &PinnedHead) -> bool {
        match cause {
            Cause::Call(failure) => self.lacks_data(failure) && !self.must_have(pinned),
            Cause::Withheld if self.is_state() => !self.must_have(pinned),
            Cause::Refuted(_) => false,
            // An honest upstream need not have a block off the chain.
            _ => {
                let is_on_chain = |block: &BlockRef| {
                    pinned.chain().is_some_and(|chain| chain.is_canonical(block.number, &block.hash))
                };
                self.current.target.block().is_some_and(|block| !is_on_chain(block))
            }
        }
    }

    /// Whether a failure says that the upstream lacks the requested data. A failure that says which methods the upstream has (an
    /// unknown method, or a witness) is noted instead ([`Capabilities`](super::Capabilities)), and is no fault.
    fn lacks_data(&self, failure: &RequestFailure) -> bool {
        match failure {
            RequestFailure::NotAvailable(_) | RequestFailure::Busy { .. } => true,
            RequestFailure::Rpc { code, .. } => {
                *code != METHOD_NOT_FOUND && !matches!(self.current.target, FetchTarget::Witness { .. })
            }
            _ => false,
        }
    }

    fn is_state(&self) -> bool {
        matches!(
            self.current.target,
            FetchTarget::One(Fact::State(..)) | FetchTarget::Proof { .. } | FetchTarget::Witness { .. }
        )
    }

    /// Whether every honest upstream has the requested data: the contents of a block of the chain, or the state of one of its
    /// newest blocks. Of other data only a caller says that it exists.
    fn must_have(&self, pinned: &PinnedHead) -> bool {
        let Some(chain) = pinned.chain() else { return false };
        let is_new = |number: u64| number.saturating_add(NEW_STATES) >= chain.head().number;
        self.current.target.block().is_some_and(|block| {
            chain.is_canonical(block.number, &block.hash) && (!self.is_state() || is_new(block.number))
        })
    }
}

/// Whether the facts say "there is none" or "it is not mined yet". No response can prove that, so all healthy upstreams
/// must say so.
fn is_absence(target: &FetchTarget, facts: &FactStore) -> bool {
    match target {
        FetchTarget::One(Fact::Header(hash)) => matches!(facts.headers.get(hash), Some(None)),
        FetchTarget::One(Fact::Location(hash)) => !facts.is_mined(hash),
        _ => false,
    }
}

/// Whether the connection failed, or no response arrived in time.
fn is_no_response(cause: &Cause) -> bool {
    matches!(cause, Cause::Call(RequestFailure::Transport(_)))
}

/// The number of the block whose state was proven, if the fetch was for a proof of state.
fn state_of(target: &FetchTarget) -> Option<u64> {
    match target {
        FetchTarget::Proof { block, .. } => Some(block.number),
        _ => None,
    }
}
