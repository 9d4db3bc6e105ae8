//! Arguments for the methods that read a chain, in the order of the table.

use serde_json::{Value, json};

pub struct Named {
    /// An account with code, or without if the chain has none.
    pub contract: Value,
    pub sender: Value,
    /// The height of a block, and its hash.
    pub block: (Value, Value),
    /// The hash of a transaction in the block.
    pub transaction: Value,
    /// The block whose state is read.
    pub state: Value,
    /// The message, block and overrides of a call.
    pub call: Value,
    pub signed: Value,
    /// The RLP of the block; null where no test reads it.
    pub encoded: Value,
    pub logs: Value,
}

/// Arguments for a method that reads the chain; none for one that takes none; `None` for one that changes the chain, or that
/// needs a filter.
pub fn reading(method: &str, named: &Named) -> Option<Value> {
    let Named { contract, sender, block: (number, hash), transaction, state, call, signed, encoded, logs } =
        named;
    let word = format!("0x{}", "00".repeat(32));
    Some(match method {
        "web3_sha3" => json!(["0x68656c6c6f"]),
        "eth_getAccount"
        | "eth_getAccountInfo"
        | "eth_getBalance"
        | "eth_getCode"
        | "eth_getTransactionCount"
        | "ots_hasCode" => json!([contract, state]),
        "eth_getStorageAt" | "ext_getStorageBytesAt" => json!([contract, "0x0", state]),
        "eth_getStorageValues" => json!([{(contract.as_str().unwrap_or_default()): [word, "0x1"]}, state]),
        "eth_getProof" | "ext_getProof" => json!([contract, [word], state]),
        "eth_getBlockByHash" => json!([hash, true]),
        "eth_getBlockByNumber" => json!([number, true]),
        "debug_executionWitness"
        | "debug_getRawBlock"
        | "debug_getRawHeader"
        | "debug_getRawReceipts"
        | "debug_getRawTransactions"
        | "debug_traceBlockByNumber"
        | "erigon_getHeaderByNumber"
        | "eth_getBlockReceipts"
        | "eth_getBlockTransactionCountByNumber"
        | "eth_getBlocksByNumber"
        | "eth_getHeaderByNumber"
        | "eth_getUncleCountByBlockNumber"
        | "ext_getRawBlockHeaderByNumber"
        | "ots_getBlockDetails"
        | "rootlight_verification"
        | "trace_block" => json!([number]),
        "debug_traceBlockByHash"
        | "eth_getBlockTransactionCountByHash"
        | "eth_getHeaderByHash"
        | "eth_getUncleCountByBlockHash"
        | "ext_getRawBlockHeaderByHash"
        | "ots_getBlockDetailsByHash"
        | "rootlight_getBlockWitness" => json!([hash]),
        "eth_getRawTransactionByBlockHashAndIndex"
        | "eth_getTransactionByBlockHashAndIndex"
        | "eth_getUncleByBlockHashAndIndex" => json!([hash, "0x0"]),
        "eth_getRawTransactionByBlockNumberAndIndex"
        | "eth_getTransactionByBlockNumberAndIndex"
        | "eth_getUncleByBlockNumberAndIndex" => json!([number, "0x0"]),
        "debug_getRawTransaction"
        | "debug_traceTransaction"
        | "eth_getRawTransactionByHash"
        | "eth_getTransactionByHash"
        | "eth_getTransactionReceipt"
        | "ext_getRawTransactionReceiptByHash"
        | "ots_getInternalOperations"
        | "ots_getTransactionError"
        | "ots_traceTransaction"
        | "trace_transaction" => json!([transaction]),
        "trace_get" => json!([transaction, ["0x0"]]),
        "ext_getTransactionReceiptNodesByHash" => json!([hash, transaction]),
        "eth_call" | "eth_createAccessList" | "eth_estimateGas" | "rootlight_getWitness" => call.clone(),
        "eth_getLogs" | "eth_newFilter" => json!([logs]),
        "trace_filter" => json!([{"fromBlock": "0x1", "toBlock": number, "after": 0, "count": 100}]),
        "debug_accountTransactionQuota" | "txpool_contentFrom" => json!([sender]),
        "debug_storageRangeAt" => json!([number, "0x0", contract, word, "0xa"]),
        "ots_getBlockTransactions" => json!([number, 0, 10]),
        "ots_getContractCreator" => json!([contract]),
        "ots_searchTransactionsAfter" | "ots_searchTransactionsBefore" => json!([sender, number, "0x2"]),
        "debug_traceBlock" => json!([encoded, {"tracer": "callTracer"}]),
        "debug_traceCall" => json!([{"from": sender, "to": contract}, state, {"tracer": "callTracer"}]),
        "debug_traceCallMany" => json!([[{"transactions": [{"to": contract}]}], {"blockNumber": state}, {}]),
        "trace_call" => json!([{"from": sender, "to": contract}, ["trace"], state]),
        "trace_callMany" => json!([[[{"from": sender, "to": contract}, ["trace", "stateDiff"]]], state]),
        "eth_fillTransaction" => json!([{"from": sender, "to": contract}]),
        "trace_rawTransaction" => json!([signed, ["trace"]]),
        "trace_replayTransaction" => json!([transaction, ["trace"]]),
        "trace_replayBlockTransactions" => json!([number, ["trace", "stateDiff"]]),
        "eth_simulateV1" => {
            json!([{"blockStateCalls": [{"calls": [{"from": sender, "to": contract}]}]}, state])
        }
        "eth_getTransactionBySenderAndNonce" | "ots_getTransactionBySenderAndNonce" => json!([sender, "0x0"]),
        "rootlight_getBitcoinHeaders" | "rootlight_getBitcoinTags" | "rootlight_getHeaders" => {
            json!(["0x1", "0x1"])
        }
        "eth_blockNumber"
        | "eth_bridgeState"
        | "eth_config"
        | "eth_gasPrice"
        | "eth_newBlockFilter"
        | "eth_newPendingTransactionFilter"
        | "ots_getApiLevel"
        | "rootlight_checkpoint"
        | "rootlight_syncStatus"
        | "rootlight_upstreams"
        | "rpc.discover" => json!([]),
        _ => return None,
    })
}
