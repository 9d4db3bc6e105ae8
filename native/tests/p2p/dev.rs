//! A light client of a development chain that peers read.

use std::sync::Arc;
use std::time::Duration;

use rootlight::dev::Mining;
use rootlight_native::local::LocalOptions;
use rootlight_native::p2p::LocalChain;
use rootlight_native::service::Service as _;
use serde_json::{Value, json};

use crate::chain::serve;
use crate::common::dev_chain;
use crate::recorded::{ask, light};

/// Waits until the light client has the development chain's head.
async fn follows(light: &dyn rootlight_native::service::Service, head: &Value) {
    for _ in 0..600 {
        if ask(light, "eth_blockNumber", json!([])).await["result"] == *head {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the light client does not reach {head}: {:?}", light.health());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_reads_and_sends_by_peers_alone() {
    let node = dev_chain(Mining::Instant, LocalOptions::default());
    let (_server, address) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let accounts = ask(&*node, "eth_accounts", json!([])).await["result"].clone();
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await;
    let genesis = genesis["result"]["hash"].as_str().unwrap().parse().unwrap();
    // Stores 7 in cell 0, and returns it when called: PUSH1 7, PUSH1 0, SSTORE, then the code to run.
    let create = "0x6007600055600b8060106000396000f360005460005260206000f300";
    let sent = json!([{ "from": accounts[0], "data": create, "gas": "0x30000" }]);
    let hash = ask(&*node, "eth_sendTransaction", sent).await["result"].clone();
    let contract =
        ask(&*node, "eth_getTransactionReceipt", json!([hash])).await["result"]["contractAddress"].clone();
    ask(&*node, "evm_mine", json!([])).await;

    let light = light(&[address], genesis).await;
    assert!(light.is_synced(), "{:?}", light.health());
    let head = ask(&*node, "eth_blockNumber", json!([])).await["result"].clone();
    follows(&light, &head).await;
    for (method, params) in [
        ("eth_getBalance", json!([accounts[0], "latest"])),
        ("eth_getBalance", json!(["0x00000000000000000000000000000000000000ee", "latest"])),
        ("eth_getTransactionCount", json!([accounts[0], "latest"])),
        ("eth_getCode", json!([contract, "latest"])),
        ("eth_getStorageAt", json!([contract, "0x0", "latest"])),
        ("eth_call", json!([{ "to": contract }, "latest"])),
        ("eth_estimateGas", json!([{ "from": accounts[1], "to": contract }])),
        ("eth_getBlockByNumber", json!(["0x1", true])),
        ("eth_getProof", json!([contract, ["0x0", "0x1"], "0x1"])),
    ] {
        let (here, there) = (ask(&light, method, params.clone()).await, ask(&*node, method, params).await);
        assert_eq!((&here["result"], &here["level"]), (&there["result"], &Value::Null), "{method}: {here}");
        assert!(!here["result"].is_null(), "{method}: {here}");
    }

    // New blocks are told of, not only polled, and a transaction that was sent is mined.
    let signed = ask(
        &*node,
        "eth_signTransaction",
        json!([{
            "from": accounts[1], "to": accounts[2], "value": "0x7", "gas": "0x5208", "gasPrice": "0x3938700",
            "nonce": "0x0",
        }]),
    )
    .await;
    let raw = signed["result"].as_str().unwrap_or_else(|| panic!("{signed}")).to_owned();
    let sent = ask(&light, "eth_sendRawTransaction", json!([raw])).await;
    assert!(sent["result"].is_string(), "{sent}");
    for _ in 0..600 {
        let found = ask(&*node, "eth_getTransactionByHash", json!([sent["result"]])).await;
        if found["result"]["blockNumber"].is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let head = ask(&*node, "eth_blockNumber", json!([])).await["result"].clone();
    follows(&light, &head).await;
    let nonce = ask(&light, "eth_getTransactionCount", json!([accounts[1], "latest"])).await;
    assert_eq!(nonce["result"], "0x1", "{nonce}");
}
