//! A message and its answer: what sessions of light clients and of local chains have in common.

use alloc::{string::String, vec::Vec};

use alloy_primitives::B256;

use super::{
    dispatch::Dispatcher,
    envelope::{write_answer, Call, Entry, Id, Message, Outcome, MAX_BATCH},
    error::RpcError,
    method::Method,
    session::{Reply, MAX_RESPONSE},
};
use crate::engine::Refusal;

/// Highest sum of [`Method::cost`] of a message that is answered at once: a receipt, a few balances.
const BRIEF_COST: u32 = 20;

/// Whether a method that changes the chain adds one transaction and mines one block at most.
fn is_brief_change(method: &Method, call: &Call) -> bool {
    match method.name {
        "eth_sendRawTransaction" | "eth_sendTransaction" => true,
        "evm_mine" => call.params.is_empty(),
        _ => false,
    }
}

/// The members of a message, each with its call or its outcome.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) members: Vec<Member>,
    kind: Kind,
    /// Bytes of the results of finished members.
    pub(super) held: usize,
}

/// One member of a message.
#[derive(Debug)]
pub(super) struct Member {
    id: Id,
    pub(super) state: State,
    /// Blocks for whose state a witness was asked for, or what calls like this one read.
    pub(super) helped: Vec<B256>,
    /// The level that is told beside its answer, where nothing proves it.
    pub(super) level: Option<&'static str>,
    /// Whether it rests on a chain that no trusted block leads to.
    pub(super) by_work: bool,
    /// Whether what earlier calls read was asked for: once, since a guess that fails is not made again.
    pub(super) guessed: bool,
}

/// How far a member is.
#[derive(Debug)]
pub(super) enum State {
    Pending(Call),
    /// Several upstreams are asked, and what they say is counted.
    Polled,
    Finished(Outcome),
}

#[derive(Debug)]
enum Kind {
    Single,
    Batch,
    /// Answered without running anything.
    Fixed(Reply),
}

impl Exchange {
    /// Reads a message.
    pub(super) fn new(message: &[u8]) -> Self {
        let (members, kind) = match Message::parse(message, MAX_BATCH) {
            Ok(Message::Single(entry)) => (alloc::vec![Member::new(entry)], Kind::Single),
            Ok(Message::Batch(entries)) => (entries.into_iter().map(Member::new).collect(), Kind::Batch),
            Ok(Message::EmptyBatch) => {
                (Vec::new(), Kind::Fixed(Reply { body: "[]".into(), unusable: false }))
            }
            Err(error) => (Vec::new(), Kind::Fixed(Reply { body: error.to_answer(), unusable: true })),
        };
        Self { members, kind, held: 0 }
    }

    /// The calls that are still to be run.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.members.iter().filter_map(|member| match &member.state {
            State::Pending(call) => Some(call),
            State::Polled | State::Finished(_) => None,
        })
    }

    /// Whether running the calls is a few look-ups or one block away. What runs code for a caller, or goes through many
    /// blocks, is not. Of methods that change something those are that add one transaction and mine one block at most.
    pub(super) fn is_brief(&self, dispatcher: &Dispatcher) -> bool {
        let cost = |call: &Call| match dispatcher.find(&call.method) {
            None => 1,
            Some(method) if (method.writes() || method.watches()) && !is_brief_change(method, call) => {
                u32::MAX
            }
            Some(method) => method.cost,
        };
        self.calls().map(cost).fold(0, u32::saturating_add) <= BRIEF_COST
    }

    /// Runs each call that is still to be run, in order, as long as `interrupt` allows it; the rest is refused.
    pub(super) fn run_each(&mut self, interrupt: &dyn Fn() -> bool, mut run: impl FnMut(&Call) -> Outcome) {
        for place in 0..self.members.len() {
            let Some(State::Pending(call)) = self.members.get(place).map(|member| &member.state) else {
                continue;
            };
            let outcome = if interrupt() { Err(interrupted()) } else { run(call) };
            self.finish(place, outcome);
        }
    }

    /// Keeps the outcome of a member, unless the message's answer would become longer than [`MAX_RESPONSE`] with it.
    pub(super) fn finish(&mut self, place: usize, outcome: Outcome) {
        let held = self.held.saturating_add(weight(&outcome));
        let outcome = if held > MAX_RESPONSE {
            self.unmark(place);
            Err(RpcError::ResponseSize(MAX_RESPONSE))
        } else {
            self.held = held;
            outcome
        };
        if let Some(member) = self.members.get_mut(place) {
            member.state = State::Finished(outcome);
        }
    }

    /// An error of this client's own rests on nothing that an upstream says.
    fn unmark(&mut self, place: usize) {
        if let Some(member) = self.members.get_mut(place) {
            (member.level, member.by_work) = (None, false);
        }
    }

    /// The answer, or `None` when nothing is to be sent. Unfinished members are left out. To be asked for once: results
    /// move into it.
    pub(super) fn reply(&mut self) -> Option<Reply> {
        if let Kind::Fixed(reply) = &self.kind {
            return Some(reply.clone());
        }
        let batch = matches!(self.kind, Kind::Batch);
        let mut body = String::new();
        for member in core::mem::take(&mut self.members) {
            let State::Finished(outcome) = member.state else { continue };
            let Some(mut answer) = write_answer(&member.id, &outcome) else { continue };
            let start = member.by_work.then_some("work");
            for (name, text) in [("level", member.level), ("start", start)] {
                answer = marked(answer, name, text);
            }
            drop(outcome);
            if !batch {
                body = answer;
                break;
            }
            body.push(if body.is_empty() { '[' } else { ',' });
            body.push_str(&answer);
        }
        if body.is_empty() {
            return None;
        }
        if batch {
            body.push(']');
        }
        Some(Reply { body, unusable: false })
    }
}

/// About how many bytes of the answer an outcome takes.
fn weight(outcome: &Outcome) -> usize {
    match outcome {
        Ok(value) => value.get().len(),
        // In hex, and perhaps again as text.
        Err(RpcError::Reverted { data, .. }) => data.len().saturating_mul(3),
        Err(_) => 0,
    }
}

/// The error of what there is no time left for.
pub(super) fn interrupted() -> RpcError {
    RpcError::Refused(Refusal::Interrupted)
}

/// Says something beside the result or error: that nothing proves it, or that no trusted block leads to it.
fn marked(mut answer: String, name: &str, text: Option<&str>) -> String {
    let Some(text) = text else { return answer };
    answer.pop();
    for part in [",\"", name, "\":\"", text, "\"}"] {
        answer.push_str(part);
    }
    answer
}

impl Member {
    fn new(entry: Entry) -> Self {
        let state = match entry.call {
            Ok(call) => State::Pending(call),
            Err(error) => State::Finished(Err(error)),
        };
        Self { id: entry.id, state, helped: Vec::new(), level: None, by_work: false, guessed: false }
    }
}
