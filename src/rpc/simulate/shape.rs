//! The result of `eth_simulateV1`: blocks as `eth_getBlockByNumber` shows them, with the results of their calls.

use alloc::{string::String, vec::Vec};

use alloy_primitives::U256;
use serde::Serialize;

use super::ancestors::{SimulatedBlock, SimulatedCall};
use crate::{
    exec::HaltReason,
    rpc::revert::reason,
    types::{
        block::block_len,
        json::{BlockParts, Data, Location, Quantity, RpcBlock, RpcLog, RpcTransaction, RpcTransactions},
    },
};

/// Code of a call that reverts, as in execution-apis.
const REVERTED: i32 = 3;
/// Code of a call that halts without a result, as in execution-apis.
const HALTED: i32 = -32015;

/// A block object with the results of its calls.
#[derive(Serialize)]
pub(super) struct BlockResult {
    #[serde(flatten)]
    block: RpcBlock,
    calls: Vec<CallResult>,
}

/// The result of one call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    return_data: Data,
    logs: Vec<RpcLog>,
    gas_used: Quantity,
    /// Gas used before refunds.
    max_used_gas: Quantity,
    /// 1 if the call succeeded, else 0.
    status: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
}

/// The error of a failed call.
#[derive(Serialize)]
struct CallError {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
}

/// The blocks as the answer shows them. `total` is the total difficulty of the block below them, if it is known; `full` selects
/// transaction objects instead of hashes.
pub(super) fn blocks(blocks: &[SimulatedBlock], mut total: Option<U256>, full: bool) -> Vec<BlockResult> {
    let mut results = Vec::new();
    for block in blocks {
        total = total.map(|total| total.saturating_add(block.header.difficulty.value()));
        results.push(result(block, total, full));
    }
    results
}

fn result(block: &SimulatedBlock, total_difficulty: Option<U256>, full: bool) -> BlockResult {
    let header = &block.header;
    let locations: Vec<Location> = (0..block.calls.len() as u64)
        .map(|index| Location { block_hash: header.hash(), block_number: header.number, index })
        .collect();
    let calls = || block.calls.iter().zip(&locations);
    let transactions = match full {
        true => RpcTransactions::Full(calls().map(|(call, location)| transaction(call, location)).collect()),
        false => RpcTransactions::Hashes(calls().map(|(call, _)| call.transaction.hash()).collect()),
    };
    let size = Some(block_len(header, block.calls.iter().map(|call| &call.transaction), []));
    let parts = BlockParts { transactions, uncles: Some(&[]), total_difficulty, size };
    let mut first_log = 0;
    let results = calls().map(|(call, location)| call_result(call, location, &mut first_log)).collect();
    BlockResult { block: RpcBlock::new(header, parts), calls: results }
}

fn transaction(call: &SimulatedCall, location: &Location) -> RpcTransaction {
    RpcTransaction::new(&call.transaction, call.transaction.hash(), call.sender, Some(location))
}

/// The result of a call. `first_log` is the number of logs of the block before it, and counts on.
fn call_result(call: &SimulatedCall, location: &Location, first_log: &mut u64) -> CallResult {
    let hash = call.transaction.hash();
    let mut logs = Vec::new();
    for log in &call.logs {
        // Logs of a simulation have the member `removed`, which is always false.
        logs.push(RpcLog::new(log, hash, location, *first_log).with_removed(false));
        *first_log = first_log.saturating_add(1);
    }
    let run = &call.run;
    CallResult {
        return_data: Data(run.output.clone()),
        logs,
        gas_used: run.gas_used.into(),
        max_used_gas: run.spent.into(),
        status: u64::from(run.failure.is_none()).into(),
        error: run.failure.map(|failure| error(failure, call)),
    }
}

/// The error of a failed call; `None` as failure is a revert.
fn error(failure: Option<HaltReason>, call: &SimulatedCall) -> CallError {
    let Some(halt) = failure else {
        let output = &call.run.output;
        let message = match reason(output) {
            Some(reason) => alloc::format!("execution reverted: {reason}"),
            None => "execution reverted".into(),
        };
        return CallError { code: REVERTED, message, data: Some(Data(output.clone())) };
    };
    CallError { code: HALTED, message: alloc::format!("{halt}"), data: None }
}
