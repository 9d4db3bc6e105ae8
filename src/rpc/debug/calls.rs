//! The objects of the call tracer (`callTracer`).

use alloc::{string::String, vec, vec::Vec};

use alloy_primitives::{Address, B256};
use serde::Serialize;

use super::validation::{CallAccessFields, access};
use crate::{
    exec::{
        HaltReason,
        trace::{CallTrace, TraceAction, TraceNode, TransactionTrace},
    },
    rpc::revert::reason,
    types::json::{Data, Quantity},
};

/// A call, contract creation or self-destruction, with its inner calls and its logs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallTreeNode {
    #[serde(rename = "type")]
    kind: &'static str,
    from: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gas: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gas_used: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revert_reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallTreeNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<CallLog>,
    /// Accesses to state, which only `erc7562Tracer` reports.
    #[serde(flatten)]
    access: Option<CallAccessFields>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallForm {
    /// Whether inner calls are left out.
    pub(super) only_top: bool,
    pub(super) with_log: bool,
    /// Whether inner calls of native contracts, and what the code of each call did, are shown
    /// (`erc7562Tracer`).
    pub(super) validation: bool,
}

#[derive(Debug, Serialize)]
struct CallLog {
    index: usize,
    /// Number of inner calls before the log.
    position: Quantity,
    address: Address,
    topics: Vec<B256>,
    data: Data,
}

/// The call tree of a transaction, or only its root.
pub(super) fn tree(trace: &TransactionTrace, form: CallForm) -> Option<CallTreeNode> {
    let calls = trace.calls.as_ref()?;
    let mut shown: Vec<Option<CallTreeNode>> = calls
        .nodes
        .iter()
        .map(|node| (form.validation || !node.is_inner_native()).then(|| call(node)))
        .collect();
    if form.with_log {
        add_logs(trace, calls, &mut shown);
    }
    if let Some(validation) = trace.validation.as_ref().filter(|_| form.validation) {
        for (index, call) in shown.iter_mut().enumerate() {
            let Some(call) = call else { continue };
            call.access = Some(access(validation, index));
        }
    }
    // From the last entry to the first, so that each call is complete when it moves into its parent.
    for index in (1..calls.nodes.len()).rev() {
        let (Some(parent), Some(call)) = (
            calls.nodes.get(index).and_then(|node| node.parent),
            shown.get_mut(index).and_then(Option::take),
        ) else {
            continue;
        };
        if let Some(Some(above)) = shown.get_mut(parent).filter(|_| !form.only_top) {
            above.calls.push(in_order(call));
        }
    }
    shown.into_iter().next().flatten().map(in_order)
}

/// Restores the order of a call's inner calls, which were added in reverse.
fn in_order(mut call: CallTreeNode) -> CallTreeNode {
    call.calls.reverse();
    call
}

/// Adds each log to the call that emitted it; logs of a native contract go to its caller. Log indexes count within
/// the block.
fn add_logs(trace: &TransactionTrace, calls: &CallTrace, shown: &mut [Option<CallTreeNode>]) {
    // The shown inner calls of each call that started before the log.
    let mut inner = vec![0_usize; shown.len()];
    let mut started = 0;
    for (count, traced) in calls.logs.iter().enumerate() {
        let new = calls.nodes.get(started..traced.entries).unwrap_or_default();
        for (node, _) in new.iter().zip(shown.iter().skip(started)).filter(|(_, call)| call.is_some()) {
            if let Some(inner) = node.parent.and_then(|parent| inner.get_mut(parent)) {
                *inner = inner.saturating_add(1);
            }
        }
        started = started.max(traced.entries);
        let Some(writer) = writer(calls, shown, traced.node) else { continue };
        let position = inner.get(writer).copied().unwrap_or_default();
        let Some(Some(call)) = shown.get_mut(writer) else { continue };
        call.logs.push(CallLog {
            index: trace.first_log.saturating_add(count),
            position: Quantity::from(position as u64),
            address: traced.log.address,
            topics: traced.log.data.topics().to_vec(),
            data: Data(traced.log.data.data.clone()),
        });
    }
    if !calls.logs.is_empty() {
        return;
    }
    // Logs of a transaction sent directly to a native contract belong to no reported call.
    if let Some(Some(root)) = shown.first_mut() {
        root.logs.extend(trace.logs.iter().enumerate().map(|(count, log)| CallLog {
            index: trace.first_log.saturating_add(count),
            position: Quantity::default(),
            address: log.address,
            topics: log.topics.clone(),
            data: Data(log.data.clone()),
        }));
    }
}

/// The innermost shown call around an entry.
fn writer(calls: &CallTrace, shown: &[Option<CallTreeNode>], mut node: usize) -> Option<usize> {
    while shown.get(node)?.is_none() {
        node = calls.nodes.get(node)?.parent?;
    }
    Some(node)
}

fn call(node: &TraceNode) -> CallTreeNode {
    let (kind, from) = match &node.action {
        TraceAction::Frame(start) => (start.kind.opcode_name(), start.from),
        TraceAction::Destruction { contract, .. } => ("SELFDESTRUCT", *contract),
    };
    let (to, value) = match &node.action {
        TraceAction::Frame(start) => (start.to, Some(start.value)),
        TraceAction::Destruction { beneficiary, balance, .. } => (Some(*beneficiary), Some(*balance)),
    };
    let (start, close) = (node.frame(), node.close.as_ref());
    let failure = close.and_then(|close| close.failure);
    let created = close.and_then(|close| close.created).filter(|_| failure.is_none());
    CallTreeNode {
        kind,
        from,
        to: to.or(created),
        value: value.map(Quantity),
        gas: start.map(|start| start.gas.into()),
        gas_used: close.map(|close| close.gas_used.into()),
        input: start.map(|start| start.input.clone().into()),
        output: close.map(|close| close.output.clone()).filter(|output| !output.is_empty()).map(Data),
        error: failure.map(error),
        revert_reason: match (failure, close) {
            (Some(None), Some(close)) => reason(&close.output),
            _ => None,
        },
        calls: Vec::new(),
        logs: Vec::new(),
        access: None,
    }
}

fn error(failure: Option<HaltReason>) -> String {
    match failure {
        None => "execution reverted".into(),
        Some(reason) => alloc::format!("{reason}"),
    }
}
