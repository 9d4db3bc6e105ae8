//! The hosted profile, and filters that belong to an API key.

use crate::{served, support};

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::engine::HostInput;
use rootlight::light::UnprovenPolicy;
use rootlight::rpc::{Caller, MessageProgress};
use rootlight::types::{B256, KEY_ASKERS};
use rootlight_server::methods::{Profile, dispatcher, methods};
use serde_json::{Value, json};
use support::{
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

/// A call of this caller.
fn ask(dev: &mut DevClient, caller: Caller, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let message = MessageProgress::read_from(&dev.client.dispatcher(), Arc::new(caller), message.as_bytes());
    let host_input = HostInput { now: dev.now, entropy: B256::repeat_byte(9) };
    let answer = dev.client.answer(message, host_input, &|| false).into_text().unwrap();
    serde_json::from_str(&answer).unwrap()
}

fn hosted(dev: &mut DevClient, method: &str, params: Value) -> Value {
    ask(
        dev,
        Caller::default().with_operator(false).with_selection(Profile::Hosted.selection(false)),
        method,
        params,
    )
}

fn error(answer: &Value) -> (i64, &str) {
    (answer["error"]["code"].as_i64().unwrap(), answer["error"]["message"].as_str().unwrap())
}

#[test]
fn methods_that_hold_keys_or_control_the_chain_are_not_available() {
    let mut dev = served(DevClient::instant());
    for method in methods().filter(|method| !Profile::Hosted.has(method)) {
        for name in std::iter::once(&method.name).chain(method.aliases) {
            let answer = hosted(&mut dev, name, json!([]));
            let text = format!("the method {name} does not exist/is not available");
            assert_eq!(error(&answer), (-32601, text.as_str()));
        }
    }
    assert_eq!(error(&hosted(&mut dev, "eth_nonsense", json!([]))), (-32601, "method not found"));
    assert_eq!(dev.get("eth_blockNumber", json!([])), "0x0", "the chain is unchanged");
}

#[test]
fn a_hosted_service_shows_no_accounts_and_no_modules_that_it_lacks() {
    let mut dev = served(DevClient::instant());
    assert_eq!(hosted(&mut dev, "eth_accounts", json!([]))["result"], json!([]));
    let modules = hosted(&mut dev, "rpc_modules", json!([]))["result"].take();
    let names: Vec<&String> = modules.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["erigon", "eth", "ext", "net", "ots", "rootlight", "rpc", "rsk", "trace", "txpool", "web3"]
    );
    assert_eq!(dev.get("eth_accounts", json!([])).as_array().unwrap().len(), 20);
    assert!(dev.get("rpc_modules", json!([]))["evm"].is_string());
}

#[test]
fn a_filter_of_an_api_key_ends_with_the_rights_that_it_was_made_with() {
    let mut dev = served(DevClient::instant());
    let with = |rights: u64| Caller::new(KEY_ASKERS.start + 1, 7).with_rights(rights);
    let id = ask(&mut dev, with(1), "eth_newFilter", json!([{}]))["result"].take();
    assert!(ask(&mut dev, with(1), "eth_getFilterChanges", json!([id]))["result"].is_array());
    for method in ["eth_getFilterChanges", "eth_getFilterLogs"] {
        let answer = ask(&mut dev, with(2), method, json!([id]));
        assert_eq!(error(&answer), (-32000, "filter not found"), "{method}");
    }
    assert_eq!(ask(&mut dev, with(2), "eth_uninstallFilter", json!([id]))["result"], false);
    assert_eq!(ask(&mut dev, with(1), "eth_uninstallFilter", json!([id]))["result"], true);
}

#[test]
fn a_hosted_service_shows_the_number_of_its_upstreams_and_nothing_of_its_pool() {
    let mut dev = served(DevClient::instant());
    dev.get("evm_mine", json!([]));
    let upstream = || ExecutedUpstream::new(dev.client.snapshot());
    let names = vec![("https://node.internal:4444", upstream()), ("10.0.0.7", upstream())];
    let mut light = Light::among(Network::regtest(), names, UnprovenPolicy::Refuse);
    light.client = light.client.with_dispatcher(dispatcher().clone());
    assert_eq!(light.call("net_peerList", &json!([])).unwrap()[0], "https://node.internal:4444");
    let hosted = Caller::default().with_operator(false).with_selection(Profile::Hosted.selection(false));
    light.caller = Some(Arc::new(hosted));
    assert_eq!(light.call("net_peerList", &json!([])), Ok(json!(["upstream 1", "upstream 2"])));
    assert_eq!(light.call("net_peerCount", &json!([])), Ok(json!("0x2")));
    let upstreams = light.call("rootlight_upstreams", &json!([])).unwrap();
    assert_eq!((upstreams[0]["name"].clone(), upstreams.as_array().unwrap().len()), (json!("upstream 1"), 2));
    for method in methods().filter(|method| method.params.is_empty()) {
        let text = light.send(method.name, &json!([])).to_string();
        assert!(!text.contains("node.internal") && !text.contains("10.0.0.7"), "{}: {text}", method.name);
    }
    for method in ["txpool_content", "txpool_inspect"] {
        assert_eq!(light.call(method, &json!([])).unwrap_err()["code"], -32601, "{method}");
    }
    // The transactions of accounts whose keys the service holds, which are none.
    assert_eq!(light.call("eth_pendingTransactions", &json!([])), Ok(json!([])));
    assert!(light.call("txpool_status", &json!([])).is_ok());
}

#[test]
fn trace_filter_has_the_limits_of_the_hosted_column() {
    let mut dev = served(DevClient::instant());
    let account = dev.get("eth_accounts", json!([]))[0].clone();
    for _ in 0..3 {
        dev.get("eth_sendTransaction", json!([{"from": account, "to": account, "value": "0x1"}]));
    }
    let blocks = |answer: &Value| -> Vec<u64> {
        let traces = answer["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let mut blocks: Vec<u64> = traces.iter().map(|t| t["blockNumber"].as_u64().unwrap()).collect();
        blocks.dedup();
        blocks
    };
    assert_eq!(blocks(&hosted(&mut dev, "trace_filter", json!([{}]))), [3]);
    assert_eq!(blocks(&hosted(&mut dev, "trace_filter", json!([{"fromBlock": "earliest"}]))), [1, 2, 3]);
    assert_eq!(blocks(&json!({"result": dev.get("trace_filter", json!([{}]))})), [1, 2, 3]);
    let answer = hosted(&mut dev, "trace_filter", json!([{"fromBlock": "earliest", "count": 2}]));
    assert_eq!(answer["result"].as_array().unwrap().len(), 2);
    assert!(hosted(&mut dev, "trace_filter", json!([{"count": 100}]))["result"].is_array());
    let answer = hosted(&mut dev, "trace_filter", json!([{"count": 101}]));
    assert_eq!(error(&answer), (-32602, "Count value too big. Maximum 100 traces allowed."));
    assert!(dev.get("trace_filter", json!([{"count": 101}])).is_array());
}

#[test]
fn trace_filter_of_a_hosted_service_covers_at_most_2000_blocks() {
    let mut dev = served(DevClient::instant());
    dev.get("anvil_mine", json!(["0x7d0"]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 2_000);
    let range = |from: u64| json!([{"fromBlock": format!("{from:#x}"), "count": 1}]);
    assert!(hosted(&mut dev, "trace_filter", range(1))["result"].is_array());
    let answer = hosted(&mut dev, "trace_filter", range(0));
    assert_eq!(error(&answer), (-32602, "Block range too large. Maximum 2000 blocks allowed."));
}

#[test]
fn a_filter_of_an_api_key_exists_only_for_that_key() {
    let mut dev = served(DevClient::instant());
    let key = |number: u64| Caller::new(KEY_ASKERS.start + number, 7);
    let address = |number: u64| Caller::new(number, 7);
    let id = ask(&mut dev, key(1), "eth_newBlockFilter", json!([]))["result"].take();
    dev.get("evm_mine", json!([]));
    for method in ["eth_getFilterChanges", "eth_getFilterLogs"] {
        for other in [key(2), address(1), Caller::default()] {
            assert_eq!(error(&ask(&mut dev, other, method, json!([id]))), (-32000, "filter not found"));
        }
    }
    for other in [key(2), address(1)] {
        assert_eq!(ask(&mut dev, other, "eth_uninstallFilter", json!([id]))["result"], false);
    }
    let changes = ask(&mut dev, key(1), "eth_getFilterChanges", json!([id]));
    assert_eq!(changes["result"].as_array().unwrap().len(), 1, "the other callers took nothing");
    assert_eq!(ask(&mut dev, key(1), "eth_uninstallFilter", json!([id]))["result"], true);
    // Without keys, a client keeps its filter when its address changes.
    let id = ask(&mut dev, address(1), "eth_newBlockFilter", json!([]))["result"].take();
    assert_eq!(error(&ask(&mut dev, key(1), "eth_getFilterChanges", json!([id]))).0, -32000);
    assert_eq!(ask(&mut dev, address(2), "eth_getFilterChanges", json!([id]))["result"], json!([]));
}
