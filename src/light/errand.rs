//! A task on its way through the upstreams: the best first, the next when one fails, all of them for an absence.

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

/// A question to one of the upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The upstream, by number.
    pub upstream: usize,
    /// What to ask.
    pub call: UpstreamCall,
}

/// What came of an errand for now.
#[derive(Debug)]
pub enum Settled {
    /// Facts, and the upstreams that were not needed.
    Proven(Box<FactStore>, Vec<usize>),
    /// More questions: in another way, or to another upstream.
    Again(Box<Errand>),
    /// Nobody could prove it.
    Failed(FactFailure),
}

/// A task and the upstreams still to be asked.
#[derive(Debug)]
pub struct Errand {
    /// What is fetched.
    pub task: Task,
    others: VecDeque<usize>,
    /// Said by at least one: there is none, or it waits.
    absent: Option<FactStore>,
    /// What the present upstream is to blame for, unless it proves the fact in another way.
    doubt: Option<Observation>,
    failures: Vec<AttemptFailure>,
}

impl Errand {
    /// A task for the upstreams of a list, best first.
    pub fn new(mut task: Task, roster: &[usize]) -> Self {
        let mut others: VecDeque<usize> = roster.iter().copied().collect();
        task.upstream = others.pop_front().unwrap_or(0);
        Self { task, others, absent: None, doubt: None, failures: Vec::new() }
    }

    /// The questions of the present attempt.
    pub fn questions(&self) -> impl Iterator<Item = Question> + '_ {
        let upstream = self.task.upstream;
        self.task.calls().iter().map(move |call| Question { upstream, call: call.clone() })
    }

    /// Takes as many answers as there are questions.
    pub fn answer(&mut self, answers: &mut impl Iterator<Item = Answer>) {
        for index in 0..self.task.calls().len() {
            if let Some(answer) = answers.next() {
                self.task.answer(index, answer);
            }
        }
    }

    /// Proves the answers, or finds another way.
    pub fn settle(mut self, pin: &Pin, known: &Known<'_>, seen: &mut Vec<Observation>) -> Settled {
        let (upstream, call) = (self.task.upstream, self.task.calls().first().cloned());
        let observation = |outcome| call.map(|call| Observation { upstream, call, outcome });
        match prove::task(&self.task, pin.against(), known) {
            Ok(facts) if is_absence(&self.task.wanted, &facts) => {
                // A transaction that waits is more than none.
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
                    // JSON hides part of some headers. Another way to ask tells.
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
        // "There is none" needs only those that are well: one that rests may not answer for long.
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

    /// Whether an honest upstream may answer so about a block off the chain: it need not have the block, and asked by
    /// number or by transaction it answers about its own chain. Asked by the block's hash it gives no false answer.
    fn excuses(&self, cause: &Cause, pin: &Pin) -> bool {
        if matches!(cause, Cause::Call(_) | Cause::Refuted(_)) {
            return false;
        }
        let held =
            |block: &BlockRef| pin.chain().is_some_and(|chain| chain.is_canonical(block.number, &block.hash));
        self.task.wanted.block().is_some_and(|block| !held(block))
    }
}

/// "There is none" or "it is not mined yet", which no answer can show: all upstreams that are well have to say so.
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
