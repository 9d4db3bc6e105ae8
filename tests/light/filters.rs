//! Filters, subscriptions and the gas price of a light client whose upstream has none of them.

use crate::support;

use rootlight::consensus::Network;
use rootlight::light::decode_headers;
use serde_json::{Value, json};
use support::{
    dev::Dev,
    light::{Light, Upstream},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// What the upstream of these tests does not have.
const SERVICES: [&str; 10] = [
    "eth_newFilter",
    "eth_newBlockFilter",
    "eth_newPendingTransactionFilter",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_uninstallFilter",
    "eth_subscribe",
    "eth_unsubscribe",
    "eth_gasPrice",
    "eth_getLogs",
];

/// Deploys a contract that logs 42 under topic 7 whenever it is called.
const LOGS_42: &str = "0x600d80600b6000396000f3602a600052600760206000a100";

/// Deploys a contract that logs as often as its argument says, under topic 7.
const LOGS_MANY: &str = "0x601680600b6000396000f360005b600760006000a1600101806000351160025700";

/// A chain with a contract that logs, and a light client of it.
struct World {
    dev: Dev,
    light: Light,
    contract: Value,
}

impl World {
    fn new() -> Self {
        Self::with(LOGS_42)
    }

    fn with(code: &str) -> Self {
        let mut dev = Dev::instant();
        let hash = dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": code, "gas": "0x30d40"}]));
        let contract = dev.get("eth_getTransactionReceipt", json!([hash]))["contractAddress"].clone();
        let mut upstream = Upstream::new(dev.client.snapshot());
        upstream.without = SERVICES.to_vec();
        let light = Light::new(Network::regtest(), upstream);
        Self { dev, light, contract }
    }

    /// A block with a log, or without.
    fn block(&mut self, logs: bool) {
        let to = if logs { self.contract.clone() } else { BOB.into() };
        self.dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": to, "gas": "0x186a0"}]));
    }

    /// Blocks without transactions.
    fn empty(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.dev.get("evm_mine", json!([]));
        }
    }

    /// The light client follows.
    fn follow(&mut self) {
        self.light.upstream.chain = self.dev.client.snapshot();
        self.light.sync();
    }

    fn get(&mut self, method: &str, params: Value) -> Value {
        self.light.call(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    fn changes(&mut self, id: &Value) -> Vec<Value> {
        self.get("eth_getFilterChanges", json!([id])).as_array().unwrap().clone()
    }
}

/// Block numbers of logs, and whether they are taken back.
fn told(logs: &[Value]) -> Vec<(&str, bool)> {
    logs.iter().map(|log| (log["blockNumber"].as_str().unwrap(), log["removed"].as_bool().unwrap())).collect()
}

#[test]
fn filters_of_blocks_and_logs_follow_the_chain_and_its_reorganisations() {
    let mut world = World::new();
    let logs = json!([{"address": world.contract, "topics": [format!("0x{:064x}", 7)]}]);
    let (by_logs, by_blocks) =
        (world.get("eth_newFilter", logs.clone()), world.get("eth_newBlockFilter", json!([])));
    let subscribed = world.get("eth_subscribe", json!(["logs", logs[0]]));
    let heads = world.get("eth_subscribe", json!(["newHeads"]));
    assert!(world.changes(&by_logs).is_empty() && world.changes(&subscribed).is_empty());

    let before = world.dev.get("evm_snapshot", json!([]));
    for logs in [true, false, true] {
        world.block(logs);
    }
    world.follow();
    for id in [&by_logs, &subscribed] {
        assert_eq!(told(&world.changes(id)), [("0x2", false), ("0x4", false)]);
        assert!(world.changes(id).is_empty(), "told once");
    }
    let found = world.get("eth_getFilterLogs", json!([by_logs]));
    assert_eq!(told(found.as_array().unwrap()), [("0x2", false), ("0x4", false)]);
    let hashes = world.changes(&by_blocks);
    let shown = world.changes(&heads);
    assert_eq!(hashes.len(), 3);
    for (hash, head) in hashes.iter().zip(&shown) {
        let block = world.get("eth_getBlockByHash", json!([hash, false]));
        assert_eq!(head.as_object().unwrap().len(), 14);
        for (name, value) in head.as_object().unwrap() {
            assert_eq!(*value, block[name], "{name}");
        }
    }

    // Another branch, one block longer.
    world.dev.get("evm_revert", json!([before]));
    for logs in [false, true, false, true] {
        world.block(logs);
    }
    world.follow();
    let asked_before = world.light.rounds;
    let expected = [("0x2", true), ("0x4", true), ("0x3", false), ("0x5", false)];
    for id in [&by_logs, &subscribed] {
        assert_eq!(told(&world.changes(id)), expected);
    }
    assert!(world.light.rounds > asked_before, "receipts are fetched and proven");
    let numbers = |heads: &[Value]| heads.iter().map(|head| head["number"].clone()).collect::<Vec<_>>();
    assert_eq!(numbers(&world.changes(&heads)), ["0x2", "0x3", "0x4", "0x5"]);
    assert_eq!(world.changes(&by_blocks).len(), 4);

    for (method, id) in [("eth_uninstallFilter", &by_logs), ("eth_unsubscribe", &subscribed)] {
        assert_eq!(world.get(method, json!([id])), true);
        assert_eq!(world.get(method, json!([id])), false);
        let gone = world.light.call("eth_getFilterChanges", &json!([id])).unwrap_err();
        assert_eq!(
            (gone["code"].as_i64(), gone["message"].as_str()),
            (Some(-32000), Some("filter not found"))
        );
    }
}

/// A poll whose logs nobody proves gives nothing away: the next one tells all.
#[test]
fn a_poll_without_proof_is_an_error_and_loses_nothing() {
    let mut world = World::new();
    let id = world.get("eth_newFilter", json!([{"address": world.contract}]));
    assert!(world.changes(&id).is_empty());
    world.block(true);
    world.follow();
    world.light.upstream.without.extend([
        "eth_getTransactionReceipt",
        "rsk_getRawTransactionReceiptByHash",
        "eth_getBlockReceipts",
        "rootlight_getReceipts",
    ]);
    let refused = world.light.call("eth_getFilterChanges", &json!([id])).unwrap_err();
    assert_eq!(refused["code"], -32002, "{refused}");
    world.light.upstream.without = SERVICES.to_vec();
    assert_eq!(told(&world.changes(&id)), [("0x2", false)]);
}

#[test]
fn pending_transactions_are_those_sent_from_here() {
    let mut world = World::new();
    let polled = world.get("eth_newPendingTransactionFilter", json!([]));
    let subscribed = world.get("eth_subscribe", json!(["newPendingTransactions"]));
    world.dev.get("evm_setAutomine", json!([false]));
    let signed = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x1"}]);
    let raw = world.dev.get("eth_signTransaction", signed);
    world.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_sendRawTransaction" => {
            Err(rootlight::light::CallFailure::Rpc { code: -32010, message: "already known".into() })
        }
        _ => answer,
    }));
    let hash = world.get("eth_sendRawTransaction", json!([raw]));
    for id in [polled, subscribed] {
        assert_eq!(world.changes(&id), std::slice::from_ref(&hash));
        assert!(world.changes(&id).is_empty());
    }
}

/// A waiting transaction is what its hash says; that it waits is the upstream's word.
#[test]
fn a_waiting_transaction_that_an_upstream_shows() {
    let mut world = World::new();
    world.dev.get("evm_setAutomine", json!([false]));
    let sent = json!([{"from": ALICE, "to": BOB, "value": "0x5", "gas": "0x5208"}]);
    let hash = world.dev.get("eth_sendTransaction", sent);
    world.follow();
    let theirs = world.dev.get("eth_getTransactionByHash", json!([hash]));
    assert_eq!(theirs["blockHash"], Value::Null);
    world.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_getTransactionByHash" => {
            let mut changed: Value = serde_json::from_str(answer?.get()).unwrap();
            changed["value"] = "0x6".into();
            Ok(serde_json::value::to_raw_value(&changed).unwrap())
        }
        _ => answer,
    }));
    let error = world.light.call("eth_getTransactionByHash", &json!([hash])).unwrap_err();
    assert_eq!(error["code"], -32002, "{error}");
    world.light.upstream.change = None;
    assert_eq!(world.get("eth_getTransactionByHash", json!([hash])), theirs);
    assert_eq!(world.get("eth_getTransactionReceipt", json!([hash])), Value::Null);
}

#[test]
fn the_gas_price_comes_from_the_verified_head() {
    let mut world = World::new();
    let minimum = world.get("eth_getBlockByNumber", json!(["latest", false]))["minimumGasPrice"].clone();
    let minimum = support::u64_of(minimum.as_str().unwrap());
    world.light.asked();
    assert_eq!(world.get("eth_gasPrice", json!([])), format!("{:#x}", minimum * 11 / 10));
    assert!(world.light.asked().is_empty());
    assert_eq!(world.dev.get("eth_gasPrice", json!([])), format!("{:#x}", minimum * 11 / 10));
}

#[test]
fn subscriptions_that_make_no_sense_are_invalid_parameters() {
    let mut world = World::new();
    for params in [json!(["blocks"]), json!([]), json!([7]), json!(["logs", {"address": "0x1"}])] {
        let error = world.light.call("eth_subscribe", &params).unwrap_err();
        assert_eq!(error["code"], -32602, "{params} {error}");
    }
    assert_eq!(world.get("eth_unsubscribe", json!(["0x12"])), false);
}

/// A chain that is executed here has no way to notify unless its host says so.
#[test]
fn subscriptions_without_notifications_are_refused_in_words() {
    let mut world = World::new();
    let error = world.dev.ask("eth_subscribe", json!(["newHeads"]));
    assert_eq!(error["error"]["code"], -32601);
    assert!(
        error["error"]["message"].as_str().unwrap().starts_with("notifications not supported"),
        "{error}"
    );
}

/// What is remembered to be taken back has an end: in blocks, and in logs.
#[test]
fn a_reorganisation_below_what_is_remembered_takes_less_back() {
    let mut world = World::new();
    let id = world.get("eth_newFilter", json!([{"address": world.contract}]));
    assert!(world.changes(&id).is_empty());
    let before = world.dev.get("evm_snapshot", json!([]));
    world.block(true);
    world.follow();
    assert_eq!(told(&world.changes(&id)), [("0x2", false)]);
    world.empty(256);
    world.block(true);
    world.follow();
    assert_eq!(told(&world.changes(&id)), [("0x103", false)]);
    world.dev.get("evm_revert", json!([before]));
    world.empty(260);
    world.follow();
    assert_eq!(told(&world.changes(&id)), [("0x103", true)], "256 blocks are remembered");

    let mut world = World::with(LOGS_MANY);
    let id = world.get("eth_newFilter", json!([{"address": world.contract}]));
    assert!(world.changes(&id).is_empty());
    let before = world.dev.get("evm_snapshot", json!([]));
    for _ in 0..5 {
        let data = format!("{:#066x}", 1_000);
        let call = json!([{"from": ALICE, "to": world.contract, "data": data, "gas": "0x1e8480"}]);
        world.dev.get("eth_sendTransaction", call);
        world.follow();
        assert_eq!(world.changes(&id).len(), 1_000);
    }
    world.dev.get("evm_revert", json!([before]));
    world.empty(6);
    world.follow();
    let back = world.changes(&id);
    assert!(back.iter().all(|log| log["removed"] == true && log["blockNumber"] != "0x2"));
    assert_eq!(back.len(), 4_000, "4,096 logs are remembered");
}

/// A question looks at so many blocks; a subscription that slept longer goes on with the newest of them.
#[test]
fn a_range_is_limited_and_a_subscription_goes_on() {
    let mut world = World::new();
    let logs = json!({"address": world.contract, "fromBlock": "0x1"});
    let subscribed = world.get("eth_subscribe", json!(["logs", {"address": world.contract}]));
    let polled = world.get("eth_newFilter", json!([logs]));
    assert!(world.changes(&subscribed).is_empty());
    world.block(true);
    world.empty(1_998);
    world.block(true);
    world.follow();
    let found = world.get("eth_getLogs", json!([{"address": world.contract, "fromBlock": "0x2"}]));
    assert_eq!(told(found.as_array().unwrap()), [("0x2", false), ("0x7d1", false)], "2,000 blocks");
    for (method, params) in [("eth_getLogs", json!([logs])), ("eth_getFilterChanges", json!([polled]))] {
        let error = world.light.call(method, &params).unwrap_err();
        assert_eq!(error["code"], -32012, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains("2000"), "{error}");
    }
    // Ranges that are none.
    let hash = format!("0x{}", "11".repeat(32));
    for filter in [
        json!({"fromBlock": "0x5", "toBlock": "0x4"}),
        json!({"blockHash": hash, "toBlock": "0x4"}),
        json!({"blockHash": hash, "fromBlock": "0x4"}),
    ] {
        assert_eq!(
            world.light.call("eth_getLogs", &json!([filter])).unwrap_err()["code"],
            -32602,
            "{filter}"
        );
    }
    world.block(false);
    world.follow();
    assert_eq!(told(&world.changes(&subscribed)), [("0x7d1", false)]);
    // Headers for other clients come in bounded numbers too.
    let headers = world.get("rootlight_getHeaders", json!(["0x10", "0x400"]));
    let headers = decode_headers(headers.as_str().unwrap(), 1_024, &Network::regtest()).unwrap();
    assert_eq!((headers.len(), headers[255].0.header().number), (256, 0x10f));
}

/// As in the reference: any number of logs in 2,000 blocks, and 10,000 in more.
#[test]
fn a_local_chain_gives_so_many_logs_at_once() {
    let mut world = World::with(LOGS_MANY);
    for _ in 0..11 {
        let data = format!("{:#066x}", 1_000);
        let call = json!([{"from": ALICE, "to": world.contract, "data": data, "gas": "0x1e8480"}]);
        world.dev.get("eth_sendTransaction", call);
    }
    world.empty(1_989);
    let before = world.dev.get("evm_snapshot", json!([]));
    let from = |block: &str| json!([{"address": world.contract, "fromBlock": block}]);
    let (two_thousand, more, less) = (from("0x2"), from("0x1"), from("0x4"));
    assert_eq!(world.dev.get("eth_getLogs", two_thousand).as_array().unwrap().len(), 11_000);
    assert_eq!(world.dev.refused("eth_getLogs", more.clone()).0, -32012);
    // No answer is longer than 10 MiB.
    for _ in 0..6 {
        let data = format!("{:#066x}", 5_000);
        let call = json!([{"from": ALICE, "to": world.contract, "data": data, "gas": "0x5b8d80"}]);
        world.dev.get("eth_sendTransaction", call);
    }
    let (code, words) = world.dev.refused("eth_getLogs", from("0x7d2"));
    assert!(code == -32011 && words.contains("10485760"), "{code} {words}");
    world.dev.get("evm_revert", json!([before]));
    world.empty(3);
    assert_eq!(world.dev.get("eth_getLogs", less).as_array().unwrap().len(), 9_000);
    assert_eq!(world.dev.refused("eth_getLogs", more).0, -32012);
}
