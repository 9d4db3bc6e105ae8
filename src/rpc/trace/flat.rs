//! The objects of geth's `flatCallTracer`: traces in the format of the former client Parity, with geth's errors.

use alloc::{format, string::String, vec::Vec};

use alloy_primitives::B256;
use serde::Serialize;

use super::shape::{
    RpcAction, RpcTraceResult, TraceAddress, action, creation_method, error, kind, outcome, trace_addresses,
};
use crate::{
    engine::BlockHeader,
    exec::trace::{TraceNode, TransactionTrace},
};

/// Parts and form of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rpc) struct FlatForm {
    /// Whether errors have Parity's texts instead of geth's.
    pub(in crate::rpc) parity_errors: bool,
    /// Whether calls of native contracts are shown.
    pub(in crate::rpc) natives: bool,
}

/// An entry of the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::rpc) struct FlatCall {
    action: RpcAction,
    block_hash: Option<B256>,
    block_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<RpcTraceResult>,
    subtraces: usize,
    trace_address: Vec<usize>,
    transaction_hash: Option<B256>,
    transaction_position: usize,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The calls of a transaction of a block, each before its inner calls; without a block those of a call that is no transaction,
/// which has no hash, and 0 as the number of its block, as in geth.
pub(in crate::rpc) fn flat(
    block: Option<&BlockHeader>,
    trace: &TransactionTrace,
    form: FlatForm,
) -> Vec<FlatCall> {
    let Some(calls) = &trace.calls else { return Vec::new() };
    let mut addresses = trace_addresses(calls, form.natives);
    let transaction_hash = block.map(|_| trace.hash());
    let shown = calls.nodes.iter().enumerate();
    shown
        .filter_map(|(index, node)| {
            let TraceAddress { address, children } = addresses.remove(&index)?;
            Some(FlatCall {
                action: with_method(node),
                block_hash: block.map(|header| header.hash()),
                block_number: block.map_or(0, |header| header.number),
                error: node.close.as_ref().and_then(|close| match (form.parity_errors, close.failure?) {
                    (true, _) => error(close),
                    (false, None) => Some("execution reverted".into()),
                    (false, Some(reason)) => Some(format!("{reason}")),
                }),
                result: result(node),
                subtraces: children,
                trace_address: address,
                transaction_hash,
                transaction_position: trace.index,
                kind: kind(node),
            })
        })
        .collect()
}

/// The action. Other than in `trace_*`, a creation by the transaction itself names the opcode too.
fn with_method(node: &TraceNode) -> RpcAction {
    let mut action = action(node);
    action.creation_method =
        node.frame().filter(|start| start.kind.creates()).map(|start| creation_method(start.kind));
    action
}

/// The result. A revert has one too, whose output contains the reason; a halt has none.
fn result(node: &TraceNode) -> Option<RpcTraceResult> {
    let close = node.close.as_ref().filter(|close| !matches!(close.failure, Some(Some(_))))?;
    let mut result = outcome(node, close);
    result.address = result.address.filter(|_| !node.failed());
    Some(result)
}
