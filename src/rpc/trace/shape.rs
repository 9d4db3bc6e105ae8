//! The entries of `trace_*` answers, in the format of the former client Parity.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use alloy_primitives::{Address, B256};
use serde::Serialize;

use crate::{
    engine::BlockHeader,
    exec::{
        FrameClose, FrameKind, FrameStart, HaltReason,
        trace::{CallTrace, TraceAction, TraceNode, TransactionTrace},
    },
    types::json::{Data, Quantity},
};

/// Estimated bytes of JSON of an entry without its data.
const ENTRY_BYTES: usize = 600;

/// An entry: a call, a contract creation or a self-destruction.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RpcTrace {
    action: RpcAction,
    #[serde(flatten)]
    location: Option<TraceLocation>,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Number of direct children.
    subtraces: usize,
    /// The position of the entry in the tree: the index at each level.
    trace_address: Vec<usize>,
    result: Option<RpcTraceResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The transaction of an entry; calls that are no transactions have none.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceLocation {
    block_hash: B256,
    block_number: u64,
    transaction_hash: B256,
    transaction_position: usize,
}

impl RpcTrace {
    /// Approximate size in JSON, in bytes.
    pub(super) fn json_bytes(&self) -> usize {
        let data = |data: &Option<Data>| data.as_ref().map_or(0, |data| data.0.len().saturating_mul(2));
        let result =
            self.result.as_ref().map_or(0, |result| data(&result.output).saturating_add(data(&result.code)));
        let action = data(&self.action.input).saturating_add(data(&self.action.init));
        result.saturating_add(action).saturating_add(ENTRY_BYTES)
    }
}

/// The action of an entry. Calls, creations and self-destructions have different members of it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RpcAction {
    #[serde(skip_serializing_if = "Option::is_none")]
    call_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gas: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    init: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) creation_method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_address: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<Quantity>,
}

/// The result of an entry: the output of a call, or the code and address of a new contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RpcTraceResult {
    gas_used: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<Address>,
}

/// The trace objects of transactions, in order.
pub(super) fn traces(header: &BlockHeader, traces: &[TransactionTrace]) -> Vec<RpcTrace> {
    traces.iter().flat_map(|trace| transaction(header, trace)).collect()
}

/// The trace objects of one transaction.
pub(super) fn transaction(header: &BlockHeader, trace: &TransactionTrace) -> Vec<RpcTrace> {
    let location = TraceLocation {
        block_hash: header.hash(),
        block_number: header.number,
        transaction_hash: trace.hash(),
        transaction_position: trace.index,
    };
    entries(trace, Some(location))
}

/// The entries of a run, without the location of its transaction.
pub(super) fn run(trace: &TransactionTrace) -> Vec<RpcTrace> {
    entries(trace, None)
}

/// The shown entries of a trace.
fn entries(trace: &TransactionTrace, location: Option<TraceLocation>) -> Vec<RpcTrace> {
    let Some(calls) = &trace.calls else { return Vec::new() };
    // `false`: without inner calls of native contracts.
    let addresses = trace_addresses(calls, false);
    let shown =
        calls.nodes.iter().enumerate().filter_map(|(index, node)| Some((addresses.get(&index)?, node)));
    shown
        .map(|(position, node)| RpcTrace {
            action: action(node),
            location,
            kind: kind(node),
            subtraces: position.children,
            trace_address: position.address.clone(),
            result: node.close.as_ref().filter(|_| !node.failed()).map(|close| outcome(node, close)),
            error: node.close.as_ref().and_then(error),
        })
        .collect()
}

/// The position of an entry in the tree of shown entries.
#[derive(Debug, Default)]
pub(super) struct TraceAddress {
    /// The index at each level, from the top.
    pub(super) address: Vec<usize>,
    /// Number of direct children that are shown.
    pub(super) children: usize,
}

/// The positions of the shown entries, by the index of the entry. Inner calls of native contracts are left out, as in the
/// reference node, unless `natives` is true.
pub(super) fn trace_addresses(calls: &CallTrace, natives: bool) -> BTreeMap<usize, TraceAddress> {
    let mut addresses = BTreeMap::<usize, TraceAddress>::new();
    for (index, node) in calls.nodes.iter().enumerate() {
        let Some(parent) = node.parent else {
            addresses.insert(index, TraceAddress::default());
            continue;
        };
        let Some(above) = addresses.get_mut(&parent).filter(|_| natives || !node.is_inner_native()) else {
            continue;
        };
        let mut address = above.address.clone();
        address.push(above.children);
        above.children = above.children.saturating_add(1);
        addresses.insert(index, TraceAddress { address, children: 0 });
    }
    addresses
}

/// The type of an entry.
pub(super) fn kind(node: &TraceNode) -> &'static str {
    match &node.action {
        TraceAction::Frame(start) if start.kind.creates() => "create",
        TraceAction::Frame(_) => "call",
        TraceAction::Destruction { .. } => "suicide",
    }
}

/// The action of an entry.
pub(super) fn action(node: &TraceNode) -> RpcAction {
    match &node.action {
        TraceAction::Destruction { contract, beneficiary, balance } => RpcAction {
            address: Some(*contract),
            refund_address: Some(*beneficiary),
            balance: Some(Quantity(*balance)),
            ..RpcAction::default()
        },
        TraceAction::Frame(start) if start.kind.creates() => creation(start, node.parent.is_some()),
        TraceAction::Frame(start) => RpcAction {
            call_type: call_type(start.kind),
            from: Some(start.from),
            to: start.to,
            gas: Some(start.gas.into()),
            input: Some(start.input.clone().into()),
            value: Some(Quantity(start.value)),
            ..RpcAction::default()
        },
    }
}

/// The action of a contract creation. Only creations by contracts name the opcode.
fn creation(start: &FrameStart, inner: bool) -> RpcAction {
    RpcAction {
        from: Some(start.from),
        gas: Some(start.gas.into()),
        init: Some(start.input.clone().into()),
        creation_method: inner.then(|| creation_method(start.kind)),
        value: Some(Quantity(start.value)),
        ..RpcAction::default()
    }
}

/// The name of an opcode that creates contracts.
pub(super) fn creation_method(kind: FrameKind) -> &'static str {
    if kind == FrameKind::Create2 { "create2" } else { "create" }
}

fn call_type(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::Call => Some("call"),
        FrameKind::CallCode => Some("callcode"),
        FrameKind::DelegateCall => Some("delegatecall"),
        FrameKind::StaticCall => Some("staticcall"),
        FrameKind::Create | FrameKind::Create2 => None,
    }
}

/// The result of an entry that has ended.
pub(super) fn outcome(node: &TraceNode, close: &FrameClose) -> RpcTraceResult {
    let creates = node.frame().is_some_and(|start| start.kind.creates());
    let data = Data(close.output.clone());
    RpcTraceResult {
        gas_used: close.gas_used.into(),
        output: (!creates).then(|| data.clone()),
        code: creates.then_some(data),
        address: close.created,
    }
}

/// The error text of a failed entry.
pub(super) fn error(close: &FrameClose) -> Option<String> {
    close.failure.map(|failure| failure.map_or("Reverted", halt_text).into())
}

/// The error text of a halt in Parity's traces.
pub(in crate::rpc) fn halt_text(reason: HaltReason) -> &'static str {
    match reason {
        HaltReason::OutOfGas => "Out of gas",
        HaltReason::InvalidOpcode => "Bad instruction",
        HaltReason::InvalidJump => "Bad jump destination",
        HaltReason::StackUnderflow => "Stack underflow",
        HaltReason::StackOverflow => "Out of stack",
        HaltReason::StaticViolation => "Mutable Call In Static Context",
        HaltReason::ReturnDataOutOfBounds => "Out of bounds",
        HaltReason::AddressCollision => "Contract address collision",
        HaltReason::CodeTooLong => "Contract code too long",
        HaltReason::CodePrefix => "Contract code starts with 0xef",
        HaltReason::InitCodeTooLong => "Init code too long",
        HaltReason::NativeContract => "Built-in failed",
        _ => "Execution failed",
    }
}
