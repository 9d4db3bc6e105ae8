//! The requests of a message while they are answered: what sessions of light clients and of local chains have in common.

#[cfg(any(feature = "light", feature = "local"))]
use alloc::boxed::Box;
#[cfg(feature = "local")]
use alloc::string::String;
use alloc::{sync::Arc, vec::Vec};

#[cfg(feature = "local")]
use serde_json::value::RawValue;

#[cfg(feature = "light")]
use super::{auxiliary::PartialResult, prefetch::Prefetched};
use super::{
    caller::Caller,
    envelope::{Id, MAX_RESPONSE, Outcome},
    error::RpcError,
    message::{Call, Message, MessageEntry, MessageForm},
    method::{BRIEF_COST, Effect, Handler, Method, PageAccess},
    reply::{Marks, Reply, Response, outcome_bytes},
    request::Request,
    table,
};
#[cfg(feature = "local")]
use crate::engine::Refusal;
#[cfg(all(feature = "light", feature = "local"))]
use crate::types::BlockRef;

/// Most bytes of the results of an attempt. They stay in memory while the rest of the message waits to be run.
#[cfg(feature = "local")]
const MAX_BEGUN: usize = 64 << 10;

/// The requests of a message, each with its state.
#[derive(Debug)]
pub struct MessageProgress {
    /// The members of the message, in order; only one if it is no batch.
    pub(super) members: Vec<RequestProgress>,
    kind: MessageForm,
    /// Bytes of the finished results.
    pub(super) result_bytes: usize,
    caller: Arc<Caller>,
}

/// A request of a message, and its answer as far as the request is answered.
#[derive(Debug)]
pub(super) struct RequestProgress {
    id: Id,
    /// The method, if it exists and may be called.
    row: Option<&'static Method>,
    pub(super) state: RequestState,
    /// The effect that the host acts on.
    effect: Option<Effect>,
    /// The marks of the answer.
    pub(super) marks: Marks,
    /// The part of the answer that the auxiliary source has given; the state then has the request for the rest.
    #[cfg(feature = "light")]
    pub(super) part: Option<Box<dyn PartialResult>>,
    /// The block that the last run of the handler executed for its receipts without finishing, because facts are missing.
    #[cfg(all(feature = "light", feature = "local"))]
    pub(super) executing: Option<BlockRef>,
    /// The prefetches that were made for the request.
    #[cfg(feature = "light")]
    pub(super) prefetched: Prefetched,
}

/// How far a request is answered.
#[derive(Debug)]
pub(super) enum RequestState {
    /// Its handler is to be run.
    Pending(Request),
    /// Upstreams or the auxiliary source are asked in place of the handler (`UpstreamPoll`, `HostQuestion`).
    #[cfg(feature = "light")]
    Polled,
    /// The request has a result or an error.
    Finished(Outcome),
}

impl MessageProgress {
    /// The requests of a message. Those that the caller may not make are finished with an error.
    pub fn new(caller: Arc<Caller>, message: Message) -> Self {
        let member = |MessageEntry { id, call }: MessageEntry| {
            let request = call.and_then(|call| admitted(call, &caller));
            let row = request.as_ref().ok().map(|request| request.row);
            let state = match request {
                // A request without id gets no answer, so that the caller would not learn the subscription's id.
                Ok(request) if matches!((request.row.handler, &id), (Handler::Subscribe(_), Id::Absent)) => {
                    RequestState::Finished(Err(RpcError::InvalidRequest))
                }
                Ok(request) => RequestState::Pending(request),
                Err(error) => RequestState::Finished(Err(error)),
            };
            RequestProgress {
                id,
                row,
                state,
                effect: None,
                marks: Marks::default(),
                #[cfg(feature = "light")]
                part: None,
                #[cfg(all(feature = "light", feature = "local"))]
                executing: None,
                #[cfg(feature = "light")]
                prefetched: Prefetched::default(),
            }
        };
        let members = message.entries.into_iter().map(member).collect();
        Self { members, kind: message.kind, result_bytes: 0, caller }
    }

    /// The caller of the message.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The requests whose handlers are still to be run.
    pub(super) fn pending_requests(&self) -> impl Iterator<Item = &Request> {
        self.members.iter().filter_map(|member| match &member.state {
            RequestState::Pending(request) => Some(request),
            _ => None,
        })
    }

    /// The parameters of the only request, if its result may be streamed, and its answer up to the first element of the result;
    /// `None` for another method, a batch or a notification.
    #[cfg(feature = "local")]
    pub(super) fn streamed_call(&self) -> Option<(Vec<Box<RawValue>>, String)> {
        let [RequestProgress { id, state: RequestState::Pending(request), .. }] = &*self.members else {
            return None;
        };
        if !request.row.streams || !matches!(self.kind, MessageForm::Single) {
            return None;
        }
        let list = RawValue::from_string("[]".into()).ok()?;
        let mut start = Reply::to_one(id.clone(), Ok(list)).into_text()?;
        start.truncate(start.len().saturating_sub("]}".len()));
        Some((request.values().to_vec(), start))
    }

    /// Whether the requests that are still to be run take only a few look-ups or mine at most one block, so that passing them to
    /// another thread would cost more than answering them. Requests that run code for a caller, read many blocks or use the
    /// filters are not brief.
    pub fn is_brief(&self) -> bool {
        let cost = |request: &Request| request.row.cost_of(request.values().len());
        self.pending_requests().map(cost).fold(0, u32::saturating_add) <= BRIEF_COST
    }

    /// Runs each unfinished request in order until `interrupt` returns `true`; the others are refused as interrupted.
    #[cfg(feature = "local")]
    pub(super) fn run_each(
        &mut self,
        interrupt: &dyn Fn() -> bool,
        mut run: impl FnMut(&Request) -> (Outcome, Option<Effect>),
    ) {
        for index in 0..self.members.len() {
            let Some(RequestState::Pending(request)) = self.members.get(index).map(|member| &member.state)
            else {
                continue;
            };
            let (outcome, effect) = if interrupt() { (Err(interrupted()), None) } else { run(request) };
            self.finish(index, outcome, effect);
        }
    }

    /// Runs unfinished requests in order until `interrupt` returns `true` or a result is too long. That request and those
    /// after it stay unfinished. `interrupt` must not return `false` after `true`. Returns whether all are finished.
    #[cfg(feature = "local")]
    pub(super) fn begin_each(
        &mut self,
        interrupt: &dyn Fn() -> bool,
        mut run: impl FnMut(&Request) -> (Outcome, Option<Effect>),
    ) -> bool {
        for index in 0..self.members.len() {
            let Some(RequestState::Pending(request)) = self.members.get(index).map(|member| &member.state)
            else {
                continue;
            };
            if interrupt() {
                return false;
            }
            let (outcome, effect) = run(request);
            // A request whose logs are too long stays unfinished, so that a host that can send it in pieces runs it again.
            let stopped = matches!(
                outcome,
                Err(RpcError::Refused(Refusal::Interrupted) | RpcError::LogsTooLong { .. })
            );
            // Some methods return a partial result when they are interrupted, such as the hash rate of fewer blocks.
            if stopped || interrupt() || self.result_bytes.saturating_add(outcome_bytes(&outcome)) > MAX_BEGUN
            {
                return false;
            }
            self.finish(index, outcome, effect);
        }
        true
    }

    /// Stores the outcome of a request. If the answer would exceed [`MAX_RESPONSE`], the outcome becomes an error.
    pub(super) fn finish(&mut self, index: usize, outcome: Outcome, effect: Option<Effect>) {
        #[cfg(feature = "light")]
        let outcome = self.with_part(index, outcome);
        let result_bytes = self.result_bytes.saturating_add(outcome_bytes(&outcome));
        let outcome = if result_bytes > MAX_RESPONSE {
            self.clear_marks(index);
            Err(RpcError::ResponseSize(MAX_RESPONSE))
        } else {
            self.result_bytes = result_bytes;
            outcome
        };
        let Some(member) = self.members.get_mut(index) else { return };
        member.effect = effect.filter(|_| outcome.is_ok());
        if let Some(Effect::Unsubscribed(_)) = member.effect {
            self.caller.count_unsubscribed();
        }
        member.state = RequestState::Finished(outcome);
    }

    /// Stores a part of an answer, and makes the request for the rest the one to be run.
    #[cfg(feature = "light")]
    pub(super) fn continue_with(&mut self, index: usize, part: Box<dyn PartialResult>, rest: Request) {
        let result_bytes = self.result_bytes.saturating_add(part.bytes());
        if result_bytes > MAX_RESPONSE {
            return self.finish(index, Err(RpcError::ResponseSize(MAX_RESPONSE)), None);
        }
        self.result_bytes = result_bytes;
        if let Some(member) = self.members.get_mut(index) {
            (member.part, member.state) = (Some(part), RequestState::Pending(rest));
        }
    }

    /// The outcome, joined with the part of the answer that was stored before, if there is one.
    #[cfg(feature = "light")]
    fn with_part(&mut self, index: usize, outcome: Outcome) -> Outcome {
        let part = self.members.get_mut(index).and_then(|member| member.part.take());
        let Some(part) = part else { return outcome };
        self.result_bytes = self.result_bytes.saturating_sub(part.bytes());
        let outcome = outcome.and_then(|rest| part.joined(&rest));
        if outcome.is_err() {
            self.clear_marks(index);
        }
        outcome
    }

    /// Clears the marks of a request whose answer is an error of this client itself, which does not depend on upstreams.
    fn clear_marks(&mut self, index: usize) {
        if let Some(member) = self.members.get_mut(index) {
            member.marks = Marks::default();
        }
    }

    /// The reply. Unfinished requests are left out. To be called once: it moves the results out.
    pub(super) fn reply(&mut self) -> Reply {
        let finished = |member: RequestProgress| {
            let RequestProgress { id, row, state: RequestState::Finished(outcome), effect, marks, .. } =
                member
            else {
                return None;
            };
            Some(Response { id, row, outcome, effect, marks })
        };
        let responses = core::mem::take(&mut self.members).into_iter().filter_map(finished).collect();
        Reply { kind: self.kind.clone(), responses }
    }
}

/// The request of a call, or the error of a call that its caller may not make.
fn admitted(call: Call, caller: &Caller) -> Result<Request, RpcError> {
    let row = call.row.ok_or_else(|| table::unknown(&call.method))?;
    // The operator may call these methods, whatever rows the host has selected for other callers.
    if row.pages == PageAccess::Operator {
        return match caller.is_operator() {
            true => Request::new(row, call.params),
            false => Err(RpcError::NotAvailable(call.method)),
        };
    }
    let row = caller.row(row).ok_or(RpcError::NotAvailable(call.method))?;
    if matches!(row.handler, Handler::Subscribe(_) | Handler::Unsubscribe(_)) && !caller.is_notified() {
        return Err(RpcError::NoNotifications);
    }
    #[cfg(feature = "dev")]
    if let Some(origin) = caller.refuses(row.pages) {
        return Err(RpcError::ForeignPage { method: row.name, origin: origin.into(), pages: row.pages });
    }
    // Tracers in JavaScript run in an engine of the host, which pages of other origins must not reach.
    #[cfg(all(feature = "dev", feature = "catalogue"))]
    if let Some(origin) = caller.refuses(PageAccess::Own)
        && super::debug::has_script(row, &call.params)
    {
        let pages = PageAccess::Own;
        return Err(RpcError::ForeignPage { method: row.name, origin: origin.into(), pages });
    }
    Request::new(row, call.params)
}

/// The error of a request that was not run because the time of the message was used up.
#[cfg(feature = "local")]
pub(super) fn interrupted() -> RpcError {
    RpcError::Refused(Refusal::Interrupted)
}
