//! Runs one task against several upstreams: the best first, the next when one fails, and all of them before a fact
//! counts as absent.

use alloc::{boxed::Box, collections::VecDeque, string::ToString, sync::Arc, vec::Vec};

use super::{
    fact::{BlockRef, Fact},
    pin::Pin,
    plan, prove,
    store::{FactStore, Known, Location},
    sync::Observation,
    task::{AttemptFailure, Cause, FactFailure, Task, Wanted},
    upstream::{Answer, UpstreamCall},
};

/// A request to one of the upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The upstream, by number.
    pub upstream: usize,
    /// The request.
    pub call: UpstreamCall,
}

/// The state of an errand after [`Errand::settle`].
#[derive(Debug)]
pub enum Settled {
    /// The proven facts, and the upstreams that were not asked.
    Proven(Box<FactStore>, Vec<usize>),
    /// The errand has more requests: in another form, or to another upstream.
    Again(Box<Errand>),
    /// No upstream could prove the fact.
    Failed(FactFailure),
}

/// A task and the upstreams that are still to be asked.
#[derive(Debug)]
pub struct Errand {
    /// The task for the present upstream.
    pub task: Task,
    others: VecDeque<usize>,
    /// What at least one upstream has said: that the fact does not exist, or that the transaction is pending.
    absent: Option<FactStore>,
    /// A fault of the present upstream, reported unless it proves the fact in another form.
    doubt: Option<Observation>,
    failures: Vec<AttemptFailure>,
}

impl Errand {
    /// An errand that asks the upstreams in `roster`, best first.
    pub fn new(mut task: Task, roster: &[usize]) -> Self {
        let mut others: VecDeque<usize> = roster.iter().copied().collect();
        task.upstream = others.pop_front().unwrap_or(0);
        Self { task, others, absent: None, doubt: None, failures: Vec::new() }
    }

    /// The requests of the present attempt.
    pub fn questions(&self) -> impl Iterator<Item = Question> + '_ {
        let upstream = self.task.upstream;
        self.task.calls().iter().map(move |call| Question { upstream, call: call.clone() })
    }

    /// Takes the responses to [`Self::questions`] from an iterator, in order.
    pub fn answer(&mut self, answers: &mut impl Iterator<Item = Answer>) {
        for index in 0..self.task.calls().len() {
            if let Some(answer) = answers.next() {
                self.task.answer(index, answer);
            }
        }
    }

    /// Proves the responses, or moves on to another form of the request or to another upstream. Appends what it learned
    /// about the upstream to `seen`.
    pub fn settle(mut self, pin: &Pin, known: &Known<'_>, seen: &mut Vec<Observation>) -> Settled {
        let (upstream, call) = (self.task.upstream, self.task.calls().first().cloned());
        let observation = |outcome| call.map(|call| Observation { upstream, call, outcome });
        match prove::task(&self.task, pin.against(), known) {
            Ok(facts) if is_absence(&self.task.wanted, &facts) => {
                // A pending transaction takes precedence over an absent one.
                let waits = |place: &Arc<Location>| matches!(**place, Location::Pending(_));
                if self.absent.is_none() || facts.locations.values().any(waits) {
                    self.absent = Some(facts);
                }
                self.next_upstream(pin, known)
            }
            Ok(facts) => {
                seen.extend(observation(Ok(state_of(&self.task.wanted))));
                Settled::Proven(Box::new(facts), self.others.into())
            }
            Err(cause) => {
                let cause = self.task.blame(cause);
                match observation(Err(cause.clone())) {
                    _ if self.excuses(&cause, pin) => {}
                    // JSON hides part of some headers. Another form of the request decides whether this is a fault.
                    doubt if matches!(cause, Cause::Hidden(_)) => self.doubt = self.doubt.or(doubt),
                    observed => seen.extend(observed),
                }
                let mut parts = plan::transactions(&self.task.wanted, known);
                parts.extend(prove::uncle_hashes(&self.task));
                match self.task.next_attempt(cause, &parts) {
                    Ok(()) => Settled::Again(Box::new(self)),
                    Err(failure) => {
                        self.failures.extend(failure.attempts);
                        seen.extend(self.doubt.take());
                        self.next_upstream(pin, known)
                    }
                }
            }
        }
    }

    fn next_upstream(mut self, pin: &Pin, known: &Known<'_>) -> Settled {
        // An absence needs only the healthy upstreams: a resting one may not respond for a long time.
        let next = self.others.pop_front().filter(|next| self.absent.is_none() || !pin.rests(*next));
        let Some(upstream) = next else {
            let failure = FactFailure { wanted: self.task.wanted.to_string(), attempts: self.failures };
            return self
                .absent
                .map_or(Settled::Failed(failure), |facts| Settled::Proven(Box::new(facts), Vec::new()));
        };
        let transactions = plan::transactions(&self.task.wanted, known);
        self.task = self.task.for_upstream(upstream, &transactions);
        self.doubt = None;
        Settled::Again(Box::new(self))
    }

    /// Whether an honest upstream may give this response about a block off the chain. It need not have the block, and
    /// it answers a request by number or by transaction about its own chain. Asked by the block's hash, an honest
    /// upstream gives no false response.
    fn excuses(&self, cause: &Cause, pin: &Pin) -> bool {
        if matches!(cause, Cause::Call(_) | Cause::Refuted(_)) {
            return false;
        }
        let held =
            |block: &BlockRef| pin.chain().is_some_and(|chain| chain.is_canonical(block.number, &block.hash));
        self.task.wanted.block().is_some_and(|block| !held(block))
    }
}

/// Whether the facts say "there is none" or "it is not mined yet". No response can prove that, so all healthy upstreams
/// must say so.
fn is_absence(wanted: &Wanted, facts: &FactStore) -> bool {
    match wanted {
        Wanted::One(Fact::Header(hash)) => matches!(facts.headers.get(hash), Some(None)),
        Wanted::One(Fact::Location(hash)) => !facts.is_mined(hash),
        _ => false,
    }
}

/// The block whose state was proven.
fn state_of(wanted: &Wanted) -> Option<u64> {
    match wanted {
        Wanted::Proof { block, .. } => Some(block.number),
        _ => None,
    }
}
