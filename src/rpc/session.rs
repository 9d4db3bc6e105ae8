//! One client message on its way to an answer: run the handlers, fetch what they lack, prove it, run them again.
//!
//! The host owns the bytes and the waiting:
//! ```text
//! loop { match session.step(&cache, &interrupt) { Fetch(calls) => session.feed(ask(calls)), Done(answer) => break } }
//! cache.absorb(session.into_learned())
//! ```
//! All calls of a message see the same head.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};

use super::{
    dispatch::Dispatcher,
    error::RpcError,
    exchange::{Exchange, State},
    method::Failure,
};
use crate::{
    engine::{LightView, Refusal, Stop},
    light::{
        plan, prove, Answer, AttemptFailure, CallFailure, Cause, Fact, FactCache, FactFailure, FactStore,
        Facts, Known, Pin, Task, UpstreamCall,
    },
};

/// Most rounds of facts for one message: a chain of dependent storage reads needs one each.
pub const MAX_ROUNDS: usize = 256;

/// Most facts one message may lack at once; an `eth_call` that wants more is refused.
pub const MAX_FACTS: usize = 4096;

/// Largest answer in bytes, as the reference's `rpc.maxResponseSize`.
pub const MAX_RESPONSE: usize = 10 * 1024 * 1024;

/// What the host has to do.
#[derive(Debug)]
pub enum Step {
    /// Ask the upstream and [`Session::feed`] the answers in the same order.
    Fetch(Vec<UpstreamCall>),
    /// The answer, or `None` when nothing is to be sent (notifications).
    Done(Option<Reply>),
}

/// An answer ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// JSON text.
    pub body: String,
    /// Whether the whole message was unusable (HTTP 400).
    pub unusable: bool,
}

/// A message being answered.
#[derive(Debug)]
pub struct Session {
    dispatcher: Arc<Dispatcher>,
    pin: Pin,
    exchange: Exchange,
    own: FactStore,
    tasks: Vec<Task>,
    fetched: BTreeSet<Fact>,
    failed: BTreeMap<Fact, FactFailure>,
    rounds: usize,
}

impl Session {
    /// Reads a message; its calls will see the chain as pinned.
    pub fn new(dispatcher: Arc<Dispatcher>, pin: Pin, message: &[u8]) -> Self {
        Self {
            dispatcher,
            pin,
            exchange: Exchange::new(message),
            own: FactStore::default(),
            tasks: Vec::new(),
            fetched: BTreeSet::new(),
            failed: BTreeMap::new(),
            rounds: 0,
        }
    }

    /// Goes on as far as the known facts allow. `interrupt` is asked now and then by long runs; `true` ends them.
    pub fn step(&mut self, cache: &FactCache, interrupt: &dyn Fn() -> bool) -> Step {
        loop {
            if !self.tasks.is_empty() {
                return Step::Fetch(
                    self.tasks.iter().flat_map(|task| task.calls().iter().cloned()).collect(),
                );
            }
            let lacking = self.run_pending(cache, interrupt);
            if lacking.is_empty() {
                return Step::Done(self.exchange.reply());
            }
            self.rounds = self.rounds.saturating_add(1);
            self.start_tasks(&lacking, cache);
        }
    }

    /// Takes the answers to the questions of the last [`Step::Fetch`], in order.
    pub fn feed(&mut self, answers: Vec<Answer>, cache: &FactCache) {
        let mut answers = answers.into_iter();
        for mut task in core::mem::take(&mut self.tasks) {
            for index in 0..task.calls().len() {
                let answer = answers.next().unwrap_or(Err(CallFailure::Malformed("no answer")));
                task.answer(index, answer);
            }
            self.settle(task, cache);
        }
    }

    /// What was proven on the way, for the cache.
    pub fn into_learned(self) -> FactStore {
        self.own
    }

    /// Runs every unfinished call once; returns what they lack together.
    fn run_pending(&mut self, cache: &FactCache, interrupt: &dyn Fn() -> bool) -> Facts {
        let mut lacking = Facts::new();
        let view = LightView::new(&self.pin, Known::new(&self.own, cache), interrupt);
        for member in &mut self.exchange.members {
            let State::Pending(call) = &member.state else { continue };
            let outcome = match self.dispatcher.run(&view, call) {
                Ok(done) => Ok(done.value),
                Err(Failure::Error(error)) => Err(error),
                Err(Failure::Stop(Stop::Refused(refusal))) => Err(RpcError::Refused(refusal)),
                Err(Failure::Stop(Stop::Lacking(facts))) => {
                    match obstacle(&facts, &self.failed, &self.fetched, self.rounds) {
                        Some(refusal) => Err(RpcError::Refused(refusal)),
                        None => {
                            lacking.extend(facts);
                            continue;
                        }
                    }
                }
            };
            member.state = State::Finished(outcome);
        }
        lacking
    }

    fn start_tasks(&mut self, lacking: &Facts, cache: &FactCache) {
        let known = Known::new(&self.own, cache);
        self.fetched.extend(lacking.iter().copied());
        self.tasks = plan::tasks(lacking, &known);
        // A task without a question (receipts of a block without transactions) is complete as it is.
        let (empty, tasks) =
            core::mem::take(&mut self.tasks).into_iter().partition(|task: &Task| task.calls().is_empty());
        self.tasks = tasks;
        for task in empty {
            self.settle(task, cache);
        }
    }

    /// Proves a task's answers, or moves on to the next way of asking.
    fn settle(&mut self, mut task: Task, cache: &FactCache) {
        let proven = prove::task(&task, &self.pin, &Known::new(&self.own, cache));
        match proven {
            Ok(facts) => self.own.merge(facts),
            Err(cause) => {
                let transactions = plan::transactions(&task.wanted, &Known::new(&self.own, cache));
                match task.next_attempt(cause, &transactions) {
                    Ok(()) => self.tasks.push(task),
                    Err(failure) => {
                        for fact in plan::facts_of(&task.wanted) {
                            self.failed.insert(fact, failure.clone());
                        }
                    }
                }
            }
        }
    }
}

/// Why fetching these facts is pointless, if it is.
fn obstacle(
    facts: &Facts,
    failed: &BTreeMap<Fact, FactFailure>,
    fetched: &BTreeSet<Fact>,
    rounds: usize,
) -> Option<Refusal> {
    if let Some(failure) = facts.iter().find_map(|fact| failed.get(fact)) {
        return Some(Refusal::Unproven(failure.clone()));
    }
    if facts.len() > MAX_FACTS {
        return Some(Refusal::TooManyFacts { max: MAX_FACTS });
    }
    if rounds >= MAX_ROUNDS {
        return Some(Refusal::TooManyRounds { rounds: MAX_ROUNDS });
    }
    // A fact that was proven and is still lacking would be asked for again without end.
    let open = facts.iter().find(|fact| fetched.contains(fact))?;
    let cause = Cause::Refuted("what was proven leaves it open".into());
    let attempts = alloc::vec![AttemptFailure { method: "-", cause }];
    Some(Refusal::Unproven(FactFailure { wanted: alloc::format!("{open}"), attempts }))
}
