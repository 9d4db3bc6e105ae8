//! A message and its answer: what sessions of light clients and of local chains have in common.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

#[cfg(feature = "local")]
use serde_json::value::RawValue;

#[cfg(feature = "node-methods")]
use super::older::OlderPart;
#[cfg(feature = "light")]
use super::prefetch::Prefetched;
use super::{
    connection::Connection,
    dispatch::Dispatcher,
    envelope::{Entry, Id, MAX_RESPONSE, Message, Outcome, write_answer},
    error::RpcError,
    method::{BRIEF_COST, Handler},
    request::Request,
};
use crate::engine::{Level, Refusal};
#[cfg(all(feature = "light", feature = "local"))]
use crate::types::BlockRef;

/// Most bytes of the results of an attempt: they are kept while the rest of the message waits for its turn.
#[cfg(feature = "node-methods")]
const MAX_BEGUN: usize = 64 << 10;

/// An answer that is ready to be sent.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// JSON text.
    pub body: String,
    /// Whether the whole message was invalid (HTTP 400).
    pub unusable: bool,
    /// Ids of the subscriptions that the message has made. The host starts to poll them after it has sent the answer.
    pub subscribed: Vec<String>,
    /// Ids of the subscriptions that the message has ended.
    pub unsubscribed: Vec<String>,
    /// The method and error of a message with a single request that failed.
    pub failed: Option<Box<(&'static str, RpcError)>>,
}

/// The requests of a message, each with its state.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) members: Vec<Member>,
    kind: Kind,
    /// Bytes of the finished results.
    pub(super) held: usize,
    connection: Arc<Connection>,
    /// What the host is told beside the text of the answer.
    told: Answer,
}

/// One request of a message.
#[derive(Debug)]
pub(super) struct Member {
    id: Id,
    /// Name of the method, if it exists and may be called.
    method: Option<&'static str>,
    pub(super) state: State,
    /// The level that the answer states, if it is below verified.
    pub(super) level: Option<Level>,
    /// Whether the answer rests on a chain that no trusted block leads to.
    pub(super) by_work: bool,
    /// What the host's index gave for the older blocks of the request; the state has the rest of the request.
    #[cfg(feature = "node-methods")]
    pub(super) older: Option<OlderPart>,
    /// The block whose execution, for its receipts, has stopped in the last run.
    #[cfg(all(feature = "light", feature = "local"))]
    pub(super) executing: Option<BlockRef>,
    #[cfg(feature = "light")]
    pub(super) prefetched: Prefetched,
}

/// The progress of a request.
#[derive(Debug)]
pub(super) enum State {
    Pending(Request),
    /// Several upstreams are asked, and their responses are compared.
    #[cfg(feature = "light")]
    Polled,
    Finished(Outcome),
}

#[derive(Debug)]
enum Kind {
    Single,
    Batch,
    /// The answer is fixed without running anything.
    Fixed,
}

impl Exchange {
    /// Reads a message.
    pub(super) fn new(dispatcher: &Dispatcher, connection: Arc<Connection>, message: &[u8]) -> Self {
        let member = |entry| Member::new(entry, dispatcher, &connection);
        let mut told = Answer::default();
        let (members, kind) = match Message::parse(message, connection.batch_limit()) {
            Ok(Message::Single(entry)) => (alloc::vec![member(entry)], Kind::Single),
            Ok(Message::Batch(entries)) => (entries.into_iter().map(member).collect(), Kind::Batch),
            Ok(Message::EmptyBatch) => {
                told.body = "[]".into();
                (Vec::new(), Kind::Fixed)
            }
            Err(error) => {
                (told.body, told.unusable) = (error.to_answer(), true);
                (Vec::new(), Kind::Fixed)
            }
        };
        Self { members, kind, held: 0, connection, told }
    }

    /// The connection that the message came from.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The requests that are still to be run.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.members.iter().filter_map(|member| match &member.state {
            State::Pending(request) => Some(request),
            _ => None,
        })
    }

    /// The parameters of the only request, and its answer up to the first element of a result that is a list; `None` for
    /// another method, a batch or a notification.
    #[cfg(feature = "local")]
    pub(super) fn only_call(&self, method: &str) -> Option<(Vec<Box<RawValue>>, String)> {
        let [Member { id, method: Some(name), state: State::Pending(request), .. }] = &*self.members else {
            return None;
        };
        if *name != method || !matches!(self.kind, Kind::Single) {
            return None;
        }
        let mut start = String::new();
        if !write_answer(&mut start, id, &Ok(RawValue::from_string("[]".into()).ok()?)) {
            return None;
        }
        start.truncate(start.len().saturating_sub("]}".len()));
        Some((request.values().to_vec(), start))
    }

    /// Whether the requests take only a few look-ups or mine at most one block. Running code for a caller, reading
    /// many blocks or using the filters does not count as brief.
    pub(super) fn is_brief(&self) -> bool {
        let cost = |request: &Request| {
            let row = request.row;
            // The optional parameter of a method that changes the chain asks for more than one block.
            let more = row.writes() && request.values().len() > row.required();
            if more || row.watches() { u32::MAX } else { row.cost }
        };
        self.requests().map(cost).fold(0, u32::saturating_add) <= BRIEF_COST
    }

    /// Runs each unfinished request in order until `interrupt` returns `true`; the rest is refused.
    #[cfg(feature = "local")]
    pub(super) fn run_each(
        &mut self,
        interrupt: &dyn Fn() -> bool,
        mut run: impl FnMut(&Request) -> Outcome,
    ) {
        for place in 0..self.members.len() {
            let Some(State::Pending(request)) = self.members.get(place).map(|member| &member.state) else {
                continue;
            };
            let outcome = if interrupt() { Err(interrupted()) } else { run(request) };
            self.finish(place, outcome);
        }
    }

    /// Runs unfinished requests in order until `interrupt` returns `true` or a result is too long. That request and those
    /// after it stay unfinished. `interrupt` must not return `false` after `true`. Returns whether all are finished.
    #[cfg(feature = "node-methods")]
    pub(super) fn begin_each(
        &mut self,
        interrupt: &dyn Fn() -> bool,
        mut run: impl FnMut(&Request) -> Outcome,
    ) -> bool {
        for place in 0..self.members.len() {
            let Some(State::Pending(request)) = self.members.get(place).map(|member| &member.state) else {
                continue;
            };
            if interrupt() {
                return false;
            }
            let outcome = run(request);
            // A host that can send an answer in pieces runs a request with long logs again.
            let stopped = matches!(
                outcome,
                Err(RpcError::Refused(Refusal::Interrupted) | RpcError::LogsTooLong { .. })
            );
            // Some methods give a partial result when they are interrupted, such as the hash rate of fewer blocks.
            if stopped || interrupt() || self.held.saturating_add(weight(&outcome)) > MAX_BEGUN {
                return false;
            }
            self.finish(place, outcome);
        }
        true
    }

    /// Stores the outcome of a request. If the answer would exceed [`MAX_RESPONSE`], the outcome becomes an error.
    pub(super) fn finish(&mut self, place: usize, outcome: Outcome) {
        #[cfg(feature = "node-methods")]
        let outcome = self.with_older(place, outcome);
        let held = self.held.saturating_add(weight(&outcome));
        let outcome = if held > MAX_RESPONSE {
            self.unmark(place);
            Err(RpcError::ResponseSize(MAX_RESPONSE))
        } else {
            self.held = held;
            outcome
        };
        let Some(member) = self.members.get_mut(place) else { return };
        if let State::Pending(request) = &member.state {
            note(request, &outcome, &self.connection, &mut self.told);
        }
        member.state = State::Finished(outcome);
    }

    /// Keeps what there is of the older blocks of a request, and goes on with the rest of it.
    #[cfg(feature = "node-methods")]
    pub(super) fn go_on(&mut self, place: usize, older: OlderPart, rest: Request) {
        let held = self.held.saturating_add(older.list.get().len());
        if held > MAX_RESPONSE {
            return self.finish(place, Err(RpcError::ResponseSize(MAX_RESPONSE)));
        }
        self.held = held;
        if let Some(member) = self.members.get_mut(place) {
            (member.older, member.state) = (Some(older), State::Pending(rest));
        }
    }

    /// Puts what there is of the older blocks of a request before the rest.
    #[cfg(feature = "node-methods")]
    fn with_older(&mut self, place: usize, outcome: Outcome) -> Outcome {
        let older = self.members.get_mut(place).and_then(|member| member.older.take());
        let Some(older) = older else { return outcome };
        self.held = self.held.saturating_sub(older.list.get().len());
        let outcome = outcome.and_then(|newer| older.joined(&newer));
        if outcome.is_err() {
            self.unmark(place);
        }
        outcome
    }

    /// Clears the level of a request whose answer is an error of this client itself, which rests on no upstream.
    fn unmark(&mut self, place: usize) {
        if let Some(member) = self.members.get_mut(place) {
            (member.level, member.by_work) = (None, false);
        }
    }

    /// The answer, or `None` when nothing is to be sent. Unfinished requests are left out. To be called once: it
    /// moves the results out.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let mut answer = core::mem::take(&mut self.told);
        let is_batch = match self.kind {
            Kind::Fixed => return Some(answer),
            Kind::Single => false,
            Kind::Batch => true,
        };
        for member in core::mem::take(&mut self.members) {
            let State::Finished(outcome) = member.state else { continue };
            let before = answer.body.len();
            if is_batch {
                answer.body.push(if before == 0 { '[' } else { ',' });
            }
            if !write_answer(&mut answer.body, &member.id, &outcome) {
                answer.body.truncate(before);
                continue;
            }
            let start = member.by_work.then_some("work");
            for (name, mark) in [("level", member.level.map(Level::name)), ("start", start)] {
                add_mark(&mut answer.body, name, mark);
            }
            // The result is copied by now; dropping it frees its memory before the next member is written.
            let error = outcome.err();
            if !is_batch {
                answer.failed = member.method.zip(error).map(Box::new);
                return Some(answer);
            }
        }
        if answer.body.is_empty() {
            return None;
        }
        answer.body.push(']');
        Some(answer)
    }
}

/// Records what the host needs to know of a finished request.
fn note(request: &Request, outcome: &Outcome, connection: &Connection, told: &mut Answer) {
    let Ok(result) = outcome else { return };
    match request.row.handler {
        Handler::Subscribe(_) => told.subscribed.push(result.get().trim_matches('"').into()),
        Handler::Unsubscribe(_) if result.get() == "true" => {
            connection.count_unsubscribed();
            told.unsubscribed.push(request.params().text(0).to_ascii_lowercase());
        }
        _ => {}
    }
}

/// Approximate size of an outcome in the answer, in bytes.
fn weight(outcome: &Outcome) -> usize {
    match outcome {
        Ok(value) => value.get().len(),
        // The data appears in hex, and the decoded reason may repeat it as text.
        Err(RpcError::Reverted { data, .. }) => data.len().saturating_mul(3),
        Err(_) => 0,
    }
}

/// The error of a request for which no time was left.
pub(super) fn interrupted() -> RpcError {
    RpcError::Refused(Refusal::Interrupted)
}

/// Adds a member to the answer object at the end of a text: its level, or that no trusted block leads to the chain.
fn add_mark(answer: &mut String, name: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    answer.pop();
    for part in [",\"", name, "\":\"", text, "\"}"] {
        answer.push_str(part);
    }
}

impl Member {
    fn new(entry: Entry, dispatcher: &Dispatcher, connection: &Connection) -> Self {
        let request = entry.call.and_then(|call| dispatcher.request(call, connection));
        let method = request.as_ref().ok().map(|request| request.row.name);
        let state = match request {
            // A notification has no answer, so that the caller would not learn the subscription's id.
            Ok(request)
                if matches!((request.row.handler, &entry.id), (Handler::Subscribe(_), Id::Absent)) =>
            {
                State::Finished(Err(RpcError::InvalidRequest))
            }
            Ok(request) => State::Pending(request),
            Err(error) => State::Finished(Err(error)),
        };
        Self {
            id: entry.id,
            method,
            state,
            level: None,
            by_work: false,
            #[cfg(feature = "node-methods")]
            older: None,
            #[cfg(all(feature = "light", feature = "local"))]
            executing: None,
            #[cfg(feature = "light")]
            prefetched: Prefetched::default(),
        }
    }
}
