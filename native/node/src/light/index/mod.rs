//! Answers from the host's index of blocks, where this client has no proof: logs and traces of blocks below the start or of more
//! blocks than one request may cover, and transactions and uncles of blocks below the start. These answers have the level `unproven`.
//!
//! [`HostIndex`] is the auxiliary source. A request whose range is partly above the start is split: the index answers the older part
//! (`OlderRange`, `OlderTraces`), and a second request, `rest`, is answered with proofs.

#[cfg(test)]
mod index_test;
mod questions;
mod traces;

use std::sync::Weak;

use alloy_primitives::B256;
use futures::future::BoxFuture;
use rootlight::engine::{
    Chain as _, FINALIZED_DEPTH, FREE_LOG_BLOCKS, FilterSpec, LightView, LogFilter, MAX_LOGS, RangeStop,
    Refusal, check_count,
};
use rootlight::light::{KnownFacts, PinnedHead};
use rootlight::rpc::envelope::Outcome;
use rootlight::rpc::{
    AuxiliaryAnswer, AuxiliaryRequest, AuxiliarySource, Failure, HostAnswer, HostQuestion, Indexed, Method,
    PartialResult, Request, RpcError, log_filter_spec, range_failure,
};
use rootlight::state::Facts;
use rootlight::trie::ProvenNodes;
use rootlight::types::json::for_each_member;
use serde_json::{Value, json, value::RawValue};

pub use self::questions::{
    AskedBlock, BlockIndex, BlockPart, BlockQuestion, IndexAnswer, LogQuestion, LogReply, TraceQuestion,
    TraceReply, TransactionPart,
};
use self::traces::{AnsweredTraces, OlderTraces};

/// An index of blocks, for requests that the client cannot prove an answer to. The reference is weak, because the index
/// may hold a reference to the client.
#[derive(Debug, Clone)]
pub struct HostIndex(pub Weak<dyn BlockIndex>);

impl AuxiliarySource for HostIndex {
    fn intercept(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        known: KnownFacts<'_>,
    ) -> Option<Result<AuxiliaryRequest, RpcError>> {
        let view = &LightView::new(pinned, known, &|| false);
        if let Some(traces) = OlderTraces::of(request, pinned, view) {
            return Some(traces.map(|traces| self.ask(QuestionKind::Traces(traces, request.row()))));
        }
        OlderRange::of(request, pinned, view).map(|range| Ok(self.ask(QuestionKind::Logs(range))))
    }

    fn fall_back(
        &self,
        request: &Request,
        _: &PinnedHead,
        refusal: &Refusal,
    ) -> Option<Result<AuxiliaryRequest, RpcError>> {
        about(request, refusal).map(|question| Ok(self.ask(question)))
    }

    fn supply_state(
        &self,
        _: &Facts,
        _: &PinnedHead,
        _: KnownFacts<'_>,
    ) -> Result<Option<ProvenNodes>, Refusal> {
        Ok(None)
    }
}

impl HostIndex {
    /// A question of this kind, which the host answers later.
    fn ask(&self, kind: QuestionKind) -> AuxiliaryRequest {
        AuxiliaryRequest::Host(Box::new(IndexQuestion { index: self.0.clone(), kind }))
    }
}

/// A question to an index.
#[derive(Debug)]
struct IndexQuestion {
    index: Weak<dyn BlockIndex>,
    kind: QuestionKind,
}

/// What an index is asked for.
#[derive(Debug)]
enum QuestionKind {
    /// The logs of the older blocks of a request.
    Logs(OlderRange),
    /// The traces of the older blocks of a request.
    Traces(OlderTraces, &'static Method),
    /// A transaction or its receipt. Without an answer, the request is refused for this reason.
    Transaction(TransactionPart, B256, Refusal),
    /// A part of a block. Without an answer, the request is refused for this reason.
    Block(BlockQuestion, Refusal),
}

/// The part of a request for logs that the index answers, and the rest.
#[derive(Debug)]
struct OlderRange {
    /// The question to the index.
    asked: LogQuestion,
    /// The last block of the whole request.
    to: u64,
    /// The same request for the newer blocks, which are proven here.
    rest: Option<Request>,
}

/// The logs or traces of the older blocks of a request.
#[derive(Debug)]
struct OlderPart {
    /// A JSON array.
    list: Box<RawValue>,
    /// The limit of the logs of the whole answer. Traces are limited by the request for the newer blocks.
    logs: Option<OlderLogs>,
}

/// The logs of the older blocks of a request.
#[derive(Debug)]
struct OlderLogs {
    /// Number of logs.
    count: usize,
    /// The first block of the request.
    from: u64,
    /// The last block that the index has answered for.
    last: u64,
    /// The last block of the request.
    to: u64,
}

impl OlderRange {
    /// The part of a request that the index answers; `None` if the request needs no index, or is to be refused. The part ends at a
    /// final block, so that no reorganisation replaces a block of it, or just below the start if that is higher.
    fn of(request: &Request, pinned: &PinnedHead, view: &LightView<'_>) -> Option<Self> {
        if request.row().indexed != Some(Indexed::Logs) {
            return None;
        }
        // 0: the filter is the first parameter.
        let Ok(FilterSpec::Logs { filter, from, to }) = log_filter_spec(view, 0, request.params()) else {
            return None;
        };
        let chain = pinned.chain()?;
        let (head, lowest) = (chain.head().number, chain.lowest());
        let to = to.unwrap_or(head).min(head);
        // Few blocks, all on the proven chain, are answered with proofs.
        if from >= lowest && to.saturating_sub(from) < view.policy().max_log_blocks {
            return None;
        }
        let last = head.saturating_sub(FINALIZED_DEPTH).max(lowest.saturating_sub(1)).min(to);
        if from > last {
            return None;
        }
        // As everywhere, the number of logs is limited only for requests of more blocks than this.
        let most = (to.saturating_sub(from) >= FREE_LOG_BLOCKS).then_some(MAX_LOGS);
        let rest = if to > last { Some(rest(request, &filter, last.saturating_add(1), to)?) } else { None };
        let LogFilter { addresses, topics } = filter;
        Some(Self { asked: LogQuestion { from, to: last, addresses, topics, most }, to, rest })
    }

    /// Evaluates the reply of the index: the whole answer, or a part that lacks the logs of newer blocks.
    fn answered(self, reply: LogReply) -> Result<AuxiliaryAnswer, RpcError> {
        let (from, last, to) = (self.asked.from, self.asked.to, self.to);
        let (count, logs) = match reply {
            LogReply::All { count, logs } => (count, logs),
            LogReply::TooMany { at } => return Err(too_many(from, to, at)),
            LogReply::TooLong { at } => {
                // The range before the block at which the answer became too long, as advice to the caller.
                let fits = (at > from).then(|| (from, at.saturating_sub(1)));
                return Err(error(range_failure(RangeStop::TooLong { fits })));
            }
        };
        Ok(match self.rest {
            Some(rest) => {
                let limit = Some(OlderLogs { count, from, last, to });
                AuxiliaryAnswer::Part(Box::new(OlderPart { list: logs, logs: limit }), rest)
            }
            None => AuxiliaryAnswer::Whole(Ok(logs)),
        })
    }
}

/// The same request for the logs of other blocks.
fn rest(request: &Request, filter: &LogFilter, from: u64, to: u64) -> Option<Request> {
    let (from, to) = (format!("{from:#x}"), format!("{to:#x}"));
    let topics = filter.topics.iter().map(|any| if any.is_empty() { Value::Null } else { json!(any) });
    let topics: Value = topics.collect();
    let mut filter =
        json!({ "fromBlock": from, "toBlock": to, "topics": topics, "address": filter.addresses });
    if filter.get("address") == Some(&json!([])) {
        filter.as_object_mut()?.remove("address");
    }
    Request::new(request.row(), vec![serde_json::value::to_raw_value(&filter).ok()?]).ok()
}

impl PartialResult for OlderPart {
    fn bytes(&self) -> usize {
        self.list.get().len()
    }

    /// This list and that of the newer blocks as one array, or [`RpcError::TooManyLogs`] if both together are too long.
    fn joined(self: Box<Self>, newer: &RawValue) -> Outcome {
        let mut count = self.logs.as_ref().map_or(0, |logs| logs.count);
        for_each_member(newer.get(), &mut |_| {
            count = count.saturating_add(1);
            true
        })
        .map_err(|_| RpcError::Internal)?;
        if let Some(OlderLogs { from, last, to, .. }) = self.logs
            && check_count(count, from, to, last).is_err()
        {
            return Err(too_many(from, to, last.saturating_add(1)));
        }
        match (members(&self.list), members(newer)) {
            (_, "") => Ok(self.list),
            ("", _) => Ok(newer.to_owned()),
            (older, newer) => Ok(RawValue::from_string(format!("[{older},{newer}]"))?),
        }
    }
}

/// The members of a JSON array, without its brackets.
fn members(list: &RawValue) -> &str {
    let text = list.get().trim();
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or_default()
}

/// The error of too many logs up to a block.
fn too_many(from: u64, to: u64, at: u64) -> RpcError {
    // A count above every limit gives the same error as the core's check.
    let stop = check_count(usize::MAX, from, to, at).err();
    stop.map_or(RpcError::Internal, |stop| error(range_failure(stop)))
}

/// The error of a failed check of a range; other failures cannot occur there.
fn error(failure: Failure) -> RpcError {
    match failure {
        Failure::Error(error) => error,
        Failure::Stop(_) => RpcError::Internal,
    }
}

/// The answer where the index fails.
fn no_answer(reason: &str) -> AuxiliaryAnswer {
    AuxiliaryAnswer::Whole(Err(RpcError::unavailable(&format!("the index gives no answer: {reason}"))))
}

/// The question about a request that was refused, because its transaction or block is below the start; `None` for other
/// refusals and methods.
fn about(request: &Request, refusal: &Refusal) -> Option<QuestionKind> {
    let part = match request.row().indexed {
        Some(Indexed::Transaction) => TransactionPart::Transaction,
        Some(Indexed::Receipt) => TransactionPart::Receipt,
        _ => return Some(QuestionKind::Block(traces::about(request, refusal)?, refusal.clone())),
    };
    let Refusal::TransactionTooOld { transaction, .. } = refusal else { return None };
    Some(QuestionKind::Transaction(part, *transaction, refusal.clone()))
}

impl HostQuestion for IndexQuestion {
    fn answer(self: Box<Self>) -> BoxFuture<'static, HostAnswer> {
        Box::pin(async move {
            let Some(index) = self.index.upgrade() else {
                return HostAnswer { answer: no_answer("it is closed"), reserved: Box::new(()) };
            };
            let found = |part: Option<Box<RawValue>>, refusal| {
                AuxiliaryAnswer::Whole(part.ok_or(RpcError::Refused(refusal)))
            };
            match self.kind {
                QuestionKind::Logs(range) => host_answer(index.logs(range.asked.clone()).await, |reply| {
                    range.answered(reply).unwrap_or_else(|error| AuxiliaryAnswer::Whole(Err(error)))
                }),
                QuestionKind::Traces(range, row) => {
                    host_answer(index.traces(range.asked.clone()).await, |reply| {
                        older_traces(range, reply, row)
                    })
                }
                QuestionKind::Block(question, refusal) => {
                    host_answer(index.block_part(question).await, |part| found(part, refusal))
                }
                QuestionKind::Transaction(part, transaction, refusal) => {
                    host_answer(index.transaction_part(part, transaction).await, |part| found(part, refusal))
                }
            }
        })
    }
}

/// The host's answer: the evaluated reply of the index, with the reservation of its bytes.
fn host_answer<T>(answer: IndexAnswer<T>, evaluate: impl FnOnce(T) -> AuxiliaryAnswer) -> HostAnswer {
    match answer {
        Ok((reply, reserved)) => HostAnswer { answer: evaluate(reply), reserved: Box::new(reserved) },
        Err(reason) => HostAnswer { answer: no_answer(&reason), reserved: Box::new(()) },
    }
}

/// Evaluates the reply about traces: the whole answer, or a part that lacks the traces of newer blocks.
fn older_traces(range: OlderTraces, reply: TraceReply, row: &'static Method) -> AuxiliaryAnswer {
    let rest = match range.answered(reply) {
        Ok(AnsweredTraces::Whole(traces)) => return AuxiliaryAnswer::Whole(Ok(traces)),
        Ok(AnsweredTraces::Part(list, filter)) => traces::rest(row, filter).map(|rest| (list, rest)),
        Err(error) => return AuxiliaryAnswer::Whole(Err(error)),
    };
    match rest {
        Some((list, rest)) => AuxiliaryAnswer::Part(Box::new(OlderPart { list, logs: None }), rest),
        None => AuxiliaryAnswer::Whole(Err(RpcError::Internal)),
    }
}
