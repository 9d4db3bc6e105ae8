//! Filters, subscriptions and the gas price of a light client whose upstream offers none of these methods.

use crate::support;

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::light::decode_headers;
use rootlight::rpc::Connection;
use rootlight::rpc::methods;
use rootlight::types::KEY_ASKERS;
use serde_json::{Value, json};
use support::{
    calls::{CallSubjects, params},
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Methods that the upstream of these tests does not have.
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

/// Deploys a contract that emits a log with the value 42 and topic 7 whenever it is called.
const LOGS_42: &str = "0x600d80600b6000396000f3602a600052600760206000a100";

/// Deploys a contract that emits as many logs with topic 7 as its argument says.
const LOGS_MANY: &str = "0x601680600b6000396000f360005b600760006000a1600101806000351160025700";

/// A chain with a contract that emits logs, and a light client of it.
struct LogsFixture {
    dev: DevClient,
    light: Light,
    contract: Value,
}

impl LogsFixture {
    fn new() -> Self {
        Self::with(LOGS_42)
    }

    fn with(code: &str) -> Self {
        let mut dev = DevClient::instant();
        let hash = dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": code, "gas": "0x30d40"}]));
        let contract = dev.get("eth_getTransactionReceipt", json!([hash]))["contractAddress"].clone();
        let mut upstream = ExecutedUpstream::new(dev.client.snapshot());
        upstream.without = SERVICES.to_vec();
        let light = Light::new(Network::regtest(), upstream);
        Self { dev, light, contract }
    }

    /// Mines a block with a log, or without.
    fn block(&mut self, logs: bool) {
        let to = if logs { self.contract.clone() } else { BOB.into() };
        self.dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": to, "gas": "0x186a0"}]));
    }

    /// Mines blocks without transactions.
    fn empty(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.dev.get("evm_mine", json!([]));
        }
    }

    /// Lets the light client synchronize.
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

/// Block numbers of logs, and whether they are marked as removed.
fn told(logs: &[Value]) -> Vec<(&str, bool)> {
    logs.iter().map(|log| (log["blockNumber"].as_str().unwrap(), log["removed"].as_bool().unwrap())).collect()
}

#[test]
fn filters_of_blocks_and_logs_follow_the_chain_and_its_reorganisations() {
    let mut world = LogsFixture::new();
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
        assert!(world.changes(id).is_empty(), "logs are reported once");
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

    // Another branch, which is one block longer.
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

/// A poll whose logs cannot be proven reports nothing, and the next poll reports everything.
#[test]
fn a_poll_without_proof_is_an_error_and_loses_nothing() {
    let mut world = LogsFixture::new();
    let id = world.get("eth_newFilter", json!([{"address": world.contract}]));
    assert!(world.changes(&id).is_empty());
    world.block(true);
    world.follow();
    world.light.upstream.without.extend([
        "eth_getTransactionReceipt",
        "rsk_getRawTransactionReceiptByHash",
        "eth_getBlockReceipts",
        "rootlight_getReceipts",
        // With proofs of state, the block is executed again.
        "eth_getProof",
        "rsk_getProof",
    ]);
    let refused = world.light.call("eth_getFilterChanges", &json!([id])).unwrap_err();
    assert_eq!(refused["code"], -32002, "{refused}");
    world.light.upstream.without = SERVICES.to_vec();
    assert_eq!(told(&world.changes(&id)), [("0x2", false)]);
}

#[test]
fn pending_transaction_filters_report_transactions_sent_through_the_client() {
    let mut world = LogsFixture::new();
    let polled = world.get("eth_newPendingTransactionFilter", json!([]));
    let subscribed = world.get("eth_subscribe", json!(["newPendingTransactions"]));
    world.dev.get("evm_setAutomine", json!([false]));
    let signed = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x1"}]);
    let raw = world.dev.get("eth_signTransaction", signed);
    world.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_sendRawTransaction" => {
            Err(rootlight::light::RequestFailure::Rpc { code: -32010, message: "already known".into() })
        }
        _ => answer,
    }));
    let hash = world.get("eth_sendRawTransaction", json!([raw]));
    for id in [polled, subscribed] {
        assert_eq!(world.changes(&id), std::slice::from_ref(&hash));
        assert!(world.changes(&id).is_empty());
    }
}

/// A connection of an asker, which may be a page of another origin.
fn asker(number: u64, page: Option<&str>) -> Option<Arc<Connection>> {
    frame(number, page, 1)
}

/// As [`asker`], of a page that may be a frame without an origin.
fn frame(number: u64, page: Option<&str>, frame: u64) -> Option<Arc<Connection>> {
    let connection = Connection::new(number, 100 + number).with_subscriptions(9);
    Some(Arc::new(connection.from_foreign_page(page.map(str::to_owned), frame)))
}

#[test]
fn pending_transactions_and_nonces_are_shown_to_their_asker_alone() {
    let key = |number: u64, page| asker(KEY_ASKERS.start + number, page);
    let (one, other) = (Some("https://one.example"), Some("https://other.example"));
    shown_to_their_asker_alone(key(1, None), [key(2, None), asker(3, None), None, key(1, one)]);
    // The sites in one browser have one address, and so has each program beside it.
    let others = [asker(3, other), asker(3, None), asker(4, one), asker(3, Some("null"))];
    shown_to_their_asker_alone(asker(3, one), others);
    // Sandboxed frames of all pages send one origin.
    let null = |number| frame(3, Some("null"), number);
    shown_to_their_asker_alone(null(1), [null(2), null(3), asker(3, one), asker(3, None)]);
    shown_to_their_asker_alone(asker(3, None), [asker(3, one), asker(4, None), key(1, None), None]);
}

fn shown_to_their_asker_alone(sender: Option<Arc<Connection>>, askers: [Option<Arc<Connection>>; 4]) {
    let mut world = LogsFixture::new();
    let watch = |world: &mut LogsFixture| {
        let polled = world.get("eth_newPendingTransactionFilter", json!([]));
        [polled, world.get("eth_subscribe", json!(["newPendingTransactions"]))]
    };
    world.light.connection = sender.clone();
    let own = watch(&mut world);
    let theirs = askers.clone().map(|asker| {
        world.light.connection = asker;
        watch(&mut world)
    });
    world.dev.get("evm_setAutomine", json!([false]));
    let signed = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x1"}]);
    let raw = world.dev.get("eth_signTransaction", signed);
    let hash = world.dev.get("eth_sendRawTransaction", json!([raw]));
    // The upstream has the transaction in its pool.
    world.light.upstream.chain = world.dev.client.snapshot();
    world.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_sendRawTransaction" => {
            Err(rootlight::light::RequestFailure::Rpc { code: -32010, message: "already known".into() })
        }
        _ => answer,
    }));
    world.light.connection = sender.clone();
    assert_eq!(world.get("eth_sendRawTransaction", json!([raw])), hash);
    let shown = |world: &mut LogsFixture| {
        let found = world.get("eth_getTransactionByHash", json!([hash]));
        (found["hash"].clone(), world.get("eth_getTransactionCount", json!([ALICE, "pending"])))
    };
    assert_eq!(shown(&mut world), (hash.clone(), json!("0x2")));
    for id in own {
        assert_eq!(world.changes(&id), std::slice::from_ref(&hash));
    }
    for (asker, ids) in askers.iter().zip(theirs) {
        world.light.connection = asker.clone();
        assert_eq!(shown(&mut world), (Value::Null, json!("0x1")), "{asker:?}");
        for id in &ids {
            assert!(world.changes(id).is_empty(), "{asker:?}");
        }
        // No method of the table tells of it.
        let told = |world: &mut LogsFixture, hash: &Value| -> Vec<String> {
            let about = CallSubjects { hash: hash.clone(), account: ALICE.into(), filter: ids[0].clone() };
            let calls = methods().filter(|method| !method.writes() && !method.watches());
            let calls = calls.flat_map(|method| params(method, &about).map(|params| (method.name, params)));
            let answers = calls.map(|(name, params)| format!("{name}: {}", world.light.send(name, &params)));
            // Some answers repeat what was asked.
            answers.map(|text| text.replace(hash.as_str().unwrap(), "HASH")).collect()
        };
        let unknown = Value::from(format!("0x{}", "ab".repeat(32)));
        // The first time, the client learns what its upstream can do.
        told(&mut world, &unknown);
        for (sent, unsent) in told(&mut world, &hash).iter().zip(&told(&mut world, &unknown)) {
            assert_eq!(sent, unsent, "{asker:?}");
        }
    }
    // A caller that has sent the transaction too is shown it, and so are all once it is mined.
    world.light.connection = askers[0].clone();
    assert_eq!(world.get("eth_getTransactionByHash", json!([hash, raw]))["hash"], hash);
    assert_eq!(world.get("eth_sendRawTransaction", json!([raw])), hash);
    assert_eq!(shown(&mut world), (hash.clone(), json!("0x2")));
    world.dev.get("evm_mine", json!([]));
    world.follow();
    for asker in askers {
        world.light.connection = asker;
        assert_eq!(shown(&mut world), (hash.clone(), json!("0x2")));
    }
}

/// The hash of a pending transaction proves its content, but only the upstream says that it is pending.
#[test]
fn a_pending_transaction_must_match_its_hash() {
    let mut world = LogsFixture::new();
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
    let mut world = LogsFixture::new();
    let minimum = world.get("eth_getBlockByNumber", json!(["latest", false]))["minimumGasPrice"].clone();
    let minimum = support::u64_of(minimum.as_str().unwrap());
    world.light.asked();
    assert_eq!(world.get("eth_gasPrice", json!([])), format!("{:#x}", minimum * 11 / 10));
    assert!(world.light.asked().is_empty());
    assert_eq!(world.dev.get("eth_gasPrice", json!([])), format!("{:#x}", minimum * 11 / 10));
}

#[test]
fn invalid_subscriptions_are_invalid_parameters() {
    let mut world = LogsFixture::new();
    for params in [json!(["blocks"]), json!([]), json!([7]), json!(["logs", {"address": "0x1"}])] {
        let error = world.light.call("eth_subscribe", &params).unwrap_err();
        assert_eq!(error["code"], -32602, "{params} {error}");
    }
    assert_eq!(world.get("eth_unsubscribe", json!(["0x12"])), false);
}

/// A local chain sends no notifications unless its host supports them.
#[test]
fn subscriptions_without_notifications_are_refused() {
    let mut world = LogsFixture::new();
    let error = world.dev.ask("eth_subscribe", json!(["newHeads"]));
    assert_eq!(error["error"]["code"], -32601);
    assert!(
        error["error"]["message"].as_str().unwrap().starts_with("notifications not supported"),
        "{error}"
    );
}

/// The number of blocks and of logs that can be taken back is limited.
#[test]
fn only_remembered_blocks_and_logs_are_taken_back() {
    let mut world = LogsFixture::new();
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

    let mut world = LogsFixture::with(LOGS_MANY);
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

/// A request covers at most 2,000 blocks. A subscription that was not polled for longer continues with the newest of
/// them.
#[test]
fn a_range_is_limited_and_a_subscription_skips_older_blocks() {
    let mut world = LogsFixture::new();
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
    // Invalid ranges.
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
    // The number of headers for other clients is limited too.
    let headers = world.get("rootlight_getHeaders", json!(["0x10", "0x400"]));
    let headers = decode_headers(headers.as_str().unwrap(), 1_024, &Network::regtest()).unwrap();
    assert_eq!((headers.len(), headers[255].0.header().number), (256, 0x10f));
}

/// As in the reference node, 2,000 blocks may return any number of logs, and longer ranges 10,000.
#[test]
fn logs_of_a_local_chain_are_limited_in_number_and_bytes() {
    let mut world = LogsFixture::with(LOGS_MANY);
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
