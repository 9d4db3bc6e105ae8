//! The core and its dispatcher in WebAssembly, on recorded headers and documents, and on a development chain.

use alloy_primitives::{B256, hex, keccak256};
use rootlight::consensus::{HeaderCandidate, Network};
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::engine::{DevNode, HostInput};
use rootlight::rpc::LocalClient;
use rootlight::verify::{verify_account, verify_header, verify_receipt};
use serde_json::{Value, json};
use wasm_bindgen_test::wasm_bindgen_test;

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

/// Hashes of headers of every version: the block hash, and the one for merged mining.
#[wasm_bindgen_test]
fn headers_have_the_hashes_of_the_reference_node() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/vectors/header_vectors.json")).unwrap();
    let network = Network::mainnet();
    let of_network = vectors.iter().filter(|vector| vector["net"] == "main");
    for vector in of_network {
        let candidate = HeaderCandidate::decode(&bytes(&vector["full"]), &network).unwrap();
        assert_eq!(candidate.header().hash().as_slice(), bytes(&vector["hash"]));
        assert_eq!(candidate.mining_hash().as_ref().unwrap().as_slice(), bytes(&vector["hmm"]));
    }
    assert_eq!(vectors.len(), 9);
}

/// A header with its proof of work, a receipt and accounts, right and changed.
#[wasm_bindgen_test]
fn documents_are_verified() {
    let table: Value = serde_json::from_str(include_str!("../../../../tests/vectors/verify.json")).unwrap();
    let regtest = Network::regtest();
    let verified = |name: &str, document: &Value| {
        let text = document.to_string().into_bytes();
        match name {
            "header" => verify_header(&text, &regtest).verified(),
            "receipt" => verify_receipt(&text, None).verified(),
            _ => verify_account(&text, None).verified(),
        }
    };
    for (name, root) in [("header", "stateRoot"), ("receipt", "receiptsRoot"), ("account", "stateRoot")] {
        let mut document = table["documents"][name].clone();
        assert!(verified(name, &document), "{name}");
        document[root] = json!(B256::repeat_byte(1));
        assert!(!verified(name, &document), "{name} with another root");
    }
}

/// The dispatcher on a development chain: reads, calls, blocks and errors.
#[wasm_bindgen_test]
fn the_dispatcher_answers_from_a_development_chain() {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
    let node = DevNode::new(config, host_input(0)).unwrap();
    let mut client = LocalClient::new(Box::new(node));
    let mut ask = |number: u8, text: &str| -> Value {
        let message = client.open(text.as_bytes());
        let reply = client.answer(message, host_input(number), &|| false).into_text().unwrap();
        serde_json::from_str(&reply).unwrap()
    };
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let accounts = ask(1, &call("eth_accounts", json!([])))["result"].clone();
    let transfer = json!([{"from": accounts[0], "to": accounts[1], "value": "0x1", "gas": "0x5208"}]);
    let sent = ask(2, &call("eth_sendTransaction", transfer))["result"].clone();
    ask(3, &call("evm_mine", json!([])));
    let receipt = ask(4, &call("eth_getTransactionReceipt", json!([sent])))["result"].clone();
    assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!("0x1")));
    // PUSH1 42, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
    let run = ask(5, &call("eth_call", json!([{"data": "0x602a60005260206000f3"}, "latest"])));
    assert!(run["result"].as_str().unwrap().ends_with("2a"), "{run}");
    let reverted = ask(6, &call("eth_call", json!([{"data": "0x60006000fd"}, "latest"])));
    assert_eq!(reverted["error"]["code"], -32015);
    assert_eq!(ask(7, "{")["error"]["code"], -32700);
    assert_eq!(ask(8, &call("eth_nothing", json!([])))["error"]["code"], -32601);
}

fn host_input(number: u8) -> HostInput {
    HostInput { now: 1_800_000_000, entropy: keccak256([number]) }
}
