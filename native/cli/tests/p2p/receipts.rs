//! Receipts, logs and traces of a light client over peers alone: the protocol has no message for receipts, so blocks are
//! executed again on the state of their parents.

use std::sync::Arc;

use rootlight::dev::Mining;
use rootlight_node::light::LightService;
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_node::peer_server::{LocalChain, PeerServer};
use rootlight_server::service::Service;
use serde_json::{Value, json};

use crate::chain::serve;
use crate::common::{ask, dev_chain};
use crate::dev::follows;
use crate::recorded::light;

/// Emits a log with topic 5, the word of the call and the word of cell 0, which it replaces; reverts without data.
const EMITTER: &str = concat!(
    // Constructor: the code that follows it.
    "0x6021600c60003960216000f3",
    // CALLDATASIZE, PUSH1 8, JUMPI, PUSH1 0, PUSH1 0, REVERT, JUMPDEST
    "36600857600080fd5b",
    // CALLDATALOAD(0) to memory 0, SLOAD(0) to memory 32
    "60003580600052600054602052",
    // SSTORE(0, word), LOG1(0, 64, 5), STOP
    "600055600560406000a100",
);

/// A chain with calls that emit logs, a call that reverts, a transfer and a creation.
async fn chain() -> (Arc<LocalService>, PeerServer, LightService, Vec<Value>) {
    let node = dev_chain(Mining::Manual, LocalOptions::default());
    let (server, address) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await;
    let genesis = genesis["result"]["hash"].as_str().unwrap().parse().unwrap();
    let accounts = ask(&*node, "eth_accounts", json!([])).await["result"].clone();
    let mut sent = Vec::new();
    let send = async |transaction: Value| {
        let sent = ask(&*node, "eth_sendTransaction", json!([transaction])).await;
        sent["result"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned()
    };
    sent.push(json!(send(json!({ "from": accounts[0], "data": EMITTER, "gas": "0x30000" })).await));
    ask(&*node, "evm_mine", json!([])).await;
    let created = ask(&*node, "eth_getTransactionReceipt", json!([sent[0]])).await;
    let contract = created["result"]["contractAddress"].clone();
    for block in 0..6u64 {
        let word = |number: u64| format!("{number:#066x}");
        for from in 0..3 {
            let call = json!({ "from": accounts[from], "to": contract, "data": word(block * 3 + 1), "gas": "0x30000" });
            sent.push(json!(send(call).await));
        }
        sent.push(json!(send(json!({ "from": accounts[3], "to": contract, "gas": "0x30000" })).await));
        let transfer = json!({ "from": accounts[4], "to": accounts[5], "value": "0x1", "gas": "0x5208" });
        sent.push(json!(send(transfer).await));
        ask(&*node, "evm_mine", json!([])).await;
    }
    let light = light(&[address], genesis).await;
    let head = ask(&*node, "eth_blockNumber", json!([])).await["result"].clone();
    follows(&light, &head).await;
    (node, server, light, sent)
}

async fn same(light: &dyn Service, node: &dyn Service, method: &str, params: Value) -> Value {
    let (here, there) = (ask(light, method, params.clone()).await, ask(node, method, params.clone()).await);
    assert_eq!(here["result"], there["result"], "{method} {params}: {here}");
    assert!(here["level"].is_null() && !here["result"].is_null(), "{method} {params}: {here}");
    here["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_logs_and_traces_are_proven_by_executing_blocks_again() {
    let (node, _server, light, sent) = chain().await;
    let (mut reverted, mut logs) = (0, 0);
    for hash in &sent {
        let receipt = same(&light, &*node, "eth_getTransactionReceipt", json!([hash])).await;
        reverted += usize::from(receipt["status"] == "0x0");
        logs += receipt["logs"].as_array().unwrap().len();
        same(&light, &*node, "eth_getTransactionByHash", json!([hash])).await;
    }
    assert_eq!((reverted, logs), (6, 18));
    let block = same(&light, &*node, "eth_getBlockByNumber", json!(["0x3", false])).await;
    for (method, params) in [
        ("eth_getBlockReceipts", json!(["0x3"])),
        ("eth_getLogs", json!([{ "fromBlock": "0x0", "toBlock": "latest" }])),
        ("eth_getLogs", json!([{ "blockHash": block["hash"] }])),
        ("eth_getLogs", json!([{ "fromBlock": "0x1", "topics": [format!("{:#066x}", 5)] }])),
        ("trace_block", json!(["0x3"])),
        ("trace_transaction", json!([sent[8]])),
        ("debug_traceTransaction", json!([sent[8]])),
        ("rsk_getRawTransactionReceiptByHash", json!([sent[8]])),
    ] {
        same(&light, &*node, method, params).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_the_newest_transaction_need_no_other_upstream() {
    let (node, _server, light, sent) = chain().await;
    let receipt = ask(&*node, "eth_getTransactionReceipt", json!([sent[1]])).await["result"].clone();
    let wanted = json!([{ "address": receipt["to"] }]);
    let filter = ask(&light, "eth_newFilter", wanted.clone()).await["result"].clone();
    let own = ask(&*node, "eth_newFilter", wanted).await["result"].clone();
    let sender = ask(&*node, "eth_accounts", json!([])).await["result"][0].clone();
    let word = format!("{:#066x}", 77);
    let call = json!([{ "from": sender, "to": receipt["to"], "data": word, "gas": "0x30000" }]);
    let hash = ask(&*node, "eth_sendTransaction", call).await["result"].clone();
    ask(&*node, "evm_mine", json!([])).await;
    follows(&light, &ask(&*node, "eth_blockNumber", json!([])).await["result"]).await;
    let changes = ask(&light, "eth_getFilterChanges", json!([filter])).await["result"].clone();
    assert_eq!(changes, ask(&*node, "eth_getFilterChanges", json!([own])).await["result"]);
    let logs = changes.as_array().unwrap();
    assert_eq!(logs.last().map(|log| &log["transactionHash"]), Some(&hash), "{logs:?}");
    same(&light, &*node, "eth_getTransactionReceipt", json!([hash])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_unexecutable_blocks_are_refused_with_a_reason() {
    let (_node, _server, light, _) = chain().await;
    let unknown = format!("0x{}", "ab".repeat(32));
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        let answer = ask(&light, method, json!([unknown])).await;
        let text = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {answer}"));
        assert!(
            text.contains("newest 64 blocks do not have") && text.contains("add a JSON-RPC upstream"),
            "{text}"
        );
        assert_eq!(answer["error"]["code"], -32002);
    }
}
