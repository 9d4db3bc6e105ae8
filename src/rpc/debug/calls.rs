//! The objects of the call tracer (`callTracer`) and of `erc7562Tracer`, which shows more of each call.
//!
//! The objects are written as text in one pass over the calls, each of which is an entry of the trace. Intermediate JSON values
//! would take most of the time of a traced call.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec, vec::Vec};

use alloy_primitives::{Address, B256};
use serde::Serialize;
use serde_json::value::RawValue;

use super::validation::access;
use crate::{
    exec::{
        FrameStart, HaltReason,
        trace::{CallTrace, TraceAction, TraceNode, TransactionTrace},
    },
    rpc::revert::reason,
    types::json::{Data, ObjectText, Quantity},
};

/// Estimated bytes of JSON of an entry, besides its input and output. Only the first allocation depends on it.
const ENTRY_BYTES: usize = 300;

/// The parts of a trace that the objects show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallForm {
    /// Whether inner calls are left out.
    pub(super) only_top: bool,
    /// Whether each call has its logs.
    pub(super) with_log: bool,
    /// Whether inner calls of native contracts, and the accesses of each call to state and code, are shown
    /// (`erc7562Tracer`).
    pub(super) validation: bool,
}

/// A log of a call.
#[derive(Debug, Serialize)]
struct CallLog<'a> {
    /// Position of the log among those of the block.
    index: usize,
    /// Number of inner calls before the log.
    position: Quantity,
    address: Address,
    topics: &'a [B256],
    data: Data,
}

/// The shown logs of each entry, by the index of the entry.
type LogsByEntry<'a> = BTreeMap<usize, Vec<CallLog<'a>>>;

/// The call tree of a transaction, or only its root; null if the trace has no calls.
pub(super) fn tree(trace: &TransactionTrace, form: CallForm) -> serde_json::Result<Box<RawValue>> {
    let Some(calls) = trace.calls.as_ref().filter(|calls| !calls.nodes.is_empty()) else {
        return serde_json::value::to_raw_value(&());
    };
    let mut logs = if form.with_log { logs(trace, calls, form) } else { LogsByEntry::new() };
    let size = calls.nodes.iter().map(|node| node.frame().map_or(0, |start| start.input.len()));
    let size = size.fold(0_usize, |sum, input| sum.saturating_add(input.saturating_mul(2)));
    let mut text =
        ObjectText::with_capacity(calls.nodes.len().saturating_mul(ENTRY_BYTES).saturating_add(size));
    // The entries whose objects are not ended, outermost first: each with its index, and whether it has an inner call.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut close = |text: &mut ObjectText, (index, has_calls): (usize, bool)| {
        if has_calls {
            text.end_list();
        }
        if let Some(logs) = logs.remove(&index) {
            text.member("logs", &logs)?;
        }
        if let Some(validation) = trace.validation.as_ref().filter(|_| form.validation) {
            text.members(&access(validation, index))?;
        }
        text.end();
        serde_json::Result::Ok(())
    };
    for (index, node) in calls.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            if form.only_top || !form.shows(node) {
                continue;
            }
            while let Some(last) = open.pop_if(|(index, _)| *index != parent) {
                close(&mut text, last)?;
            }
            let Some((_, has_calls)) = open.last_mut() else { continue };
            if *has_calls {
                text.next_item()
            } else {
                text.list("calls")
            }
            *has_calls = true;
        } else if index > 0 {
            // Only the first entry has no parent.
            break;
        }
        write_call(&mut text, node)?;
        open.push((index, false));
    }
    while let Some(last) = open.pop() {
        close(&mut text, last)?;
    }
    text.into_raw()
}

impl CallForm {
    /// Whether an entry is shown. A hidden entry hides no other: calls of native contracts have no inner calls.
    fn shows(self, node: &TraceNode) -> bool {
        self.validation || !node.is_inner_native()
    }
}

/// The logs of each call; those of a native contract belong to its caller. Log indexes count within the block.
fn logs<'a>(trace: &'a TransactionTrace, calls: &'a CallTrace, form: CallForm) -> LogsByEntry<'a> {
    let mut shown = LogsByEntry::new();
    // For each entry, the number of its shown inner calls that started before the present log.
    let mut inner_counts = vec![0_usize; calls.nodes.len()];
    let mut started = 0;
    for (count, traced) in calls.logs.iter().enumerate() {
        let started_since = calls.nodes.get(started..traced.entries_before).unwrap_or_default();
        for node in started_since.iter().filter(|node| form.shows(node)) {
            if let Some(inner_count) = node.parent.and_then(|parent| inner_counts.get_mut(parent)) {
                *inner_count = inner_count.saturating_add(1);
            }
        }
        started = started.max(traced.entries_before);
        let Some(writer) = shown_around(calls, form, traced.node) else { continue };
        let position = inner_counts.get(writer).copied().unwrap_or_default();
        shown.entry(writer).or_default().push(CallLog {
            index: trace.first_log.saturating_add(count),
            position: Quantity::from(position as u64),
            address: traced.log.address,
            topics: traced.log.data.topics(),
            data: Data(traced.log.data.data.clone()),
        });
    }
    // The log of a native contract belongs to the entry that calls it, so that the trace has no logs of a transaction that is
    // sent directly to a native contract. Such logs are shown with the transaction's own entry.
    if calls.logs.is_empty() && !trace.logs.is_empty() {
        let logs = trace.logs.iter().enumerate().map(|(count, log)| CallLog {
            index: trace.first_log.saturating_add(count),
            position: Quantity::default(),
            address: log.address,
            topics: &log.topics,
            data: Data(log.data.clone()),
        });
        shown.insert(0, logs.collect());
    }
    shown
}

/// The index of the innermost shown entry around an entry, or of the entry itself.
fn shown_around(calls: &CallTrace, form: CallForm, mut node: usize) -> Option<usize> {
    loop {
        let entry = calls.nodes.get(node)?;
        if form.shows(entry) && !(form.only_top && entry.parent.is_some()) {
            return Some(node);
        }
        node = entry.parent?;
    }
}

/// Opens the object of a call, with all members but its inner calls, its logs and its accesses to state.
fn write_call(text: &mut ObjectText, node: &TraceNode) -> serde_json::Result<()> {
    let (kind, from, to, value) = match &node.action {
        TraceAction::Frame(FrameStart { kind, from, to, value, .. }) => {
            (kind.opcode_name(), from, *to, value)
        }
        TraceAction::Destruction { contract, beneficiary, balance } => {
            ("SELFDESTRUCT", contract, Some(*beneficiary), balance)
        }
    };
    let (start, close) = (node.frame(), node.close.as_ref());
    let failure = close.and_then(|close| close.failure);
    let created = close.and_then(|close| close.created).filter(|_| failure.is_none());
    text.begin("type", kind);
    text.hex("from", from.as_slice());
    if let Some(to) = to.or(created) {
        text.hex("to", to.as_slice());
    }
    text.quantity("value", Quantity(*value));
    if let Some(start) = start {
        text.quantity("gas", start.gas.into());
    }
    if let Some(close) = close {
        text.quantity("gasUsed", close.gas_used.into());
    }
    if let Some(start) = start {
        text.hex("input", &start.input);
    }
    let output: &[u8] = close.map_or(&[], |close| &close.output);
    if !output.is_empty() {
        text.hex("output", output);
    }
    if let Some(failure) = failure {
        text.member("error", &error_text(failure))?;
        // `None` as failure is a revert, whose output may contain a reason.
        if let (None, Some(reason)) = (failure, reason(output)) {
            text.member("revertReason", &reason)?;
        }
    }
    Ok(())
}

/// The error of a failed call; `None` as failure is a revert.
fn error_text(failure: Option<HaltReason>) -> String {
    match failure {
        None => "execution reverted".into(),
        Some(reason) => alloc::format!("{reason}"),
    }
}
