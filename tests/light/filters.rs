//! Filters, subscriptions and the gas price of a light client whose upstream offers none of these methods.

use crate::support;

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::light::decode_headers;
use rootlight::rpc::Caller;
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
fn marks(logs: &[Value]) -> Vec<(&str, bool)> {
    logs.iter().map(|log| (log["blockNumber"].as_str().unwrap(), log["removed"].as_bool().unwrap())).collect()
}

#[test]
fn filters_of_blocks_and_logs_follow_the_chain_and_its_reorganisations() {
    let mut fixture = LogsFixture::new();
    let logs = json!([{"address": fixture.contract, "topics": [format!("0x{:064x}", 7)]}]);
    let (by_logs, by_blocks) =
        (fixture.get("eth_newFilter", logs.clone()), fixture.get("eth_newBlockFilter", json!([])));
    let subscribed = fixture.get("eth_subscribe", json!(["logs", logs[0]]));
    let heads = fixture.get("eth_subscribe", json!(["newHeads"]));
    assert!(fixture.changes(&by_logs).is_empty() && fixture.changes(&subscribed).is_empty());

    let before = fixture.dev.get("evm_snapshot", json!([]));
    for logs in [true, false, true] {
        fixture.block(logs);
    }
    fixture.follow();
    for id in [&by_logs, &subscribed] {
        assert_eq!(marks(&fixture.changes(id)), [("0x2", false), ("0x4", false)]);
        assert!(fixture.changes(id).is_empty(), "logs are reported once");
    }
    let found = fixture.get("eth_getFilterLogs", json!([by_logs]));
    assert_eq!(marks(found.as_array().unwrap()), [("0x2", false), ("0x4", false)]);
    let hashes = fixture.changes(&by_blocks);
    let shown = fixture.changes(&heads);
    assert_eq!(hashes.len(), 3);
    for (hash, head) in hashes.iter().zip(&shown) {
        let block = fixture.get("eth_getBlockByHash", json!([hash, false]));
        assert_eq!(head.as_object().unwrap().len(), 14);
        for (name, value) in head.as_object().unwrap() {
            assert_eq!(*value, block[name], "{name}");
        }
    }

    // Another branch, which is one block longer.
    fixture.dev.get("evm_revert", json!([before]));
    for logs in [false, true, false, true] {
        fixture.block(logs);
    }
    fixture.follow();
    let asked_before = fixture.light.rounds;
    let expected = [("0x2", true), ("0x4", true), ("0x3", false), ("0x5", false)];
    for id in [&by_logs, &subscribed] {
        assert_eq!(marks(&fixture.changes(id)), expected);
    }
    assert!(fixture.light.rounds > asked_before, "receipts are fetched and proven");
    let numbers = |heads: &[Value]| heads.iter().map(|head| head["number"].clone()).collect::<Vec<_>>();
    assert_eq!(numbers(&fixture.changes(&heads)), ["0x2", "0x3", "0x4", "0x5"]);
    assert_eq!(fixture.changes(&by_blocks).len(), 4);

    for (method, id) in [("eth_uninstallFilter", &by_logs), ("eth_unsubscribe", &subscribed)] {
        assert_eq!(fixture.get(method, json!([id])), true);
        assert_eq!(fixture.get(method, json!([id])), false);
        let gone = fixture.light.call("eth_getFilterChanges", &json!([id])).unwrap_err();
        assert_eq!(
            (gone["code"].as_i64(), gone["message"].as_str()),
            (Some(-32000), Some("filter not found"))
        );
    }
}

/// A poll whose logs cannot be proven reports nothing, and the next poll reports everything.
#[test]
fn a_poll_without_proof_is_an_error_and_loses_nothing() {
    let mut fixture = LogsFixture::new();
    let id = fixture.get("eth_newFilter", json!([{"address": fixture.contract}]));
    assert!(fixture.changes(&id).is_empty());
    fixture.block(true);
    fixture.follow();
    fixture.light.upstream.without.extend([
        "eth_getTransactionReceipt",
        "rsk_getRawTransactionReceiptByHash",
        "eth_getBlockReceipts",
        "rootlight_getReceipts",
        // With proofs of state, the block is executed again.
        "eth_getProof",
        "rsk_getProof",
    ]);
    let refused = fixture.light.call("eth_getFilterChanges", &json!([id])).unwrap_err();
    assert_eq!(refused["code"], -32002, "{refused}");
    fixture.light.upstream.without = SERVICES.to_vec();
    assert_eq!(marks(&fixture.changes(&id)), [("0x2", false)]);
}

#[test]
fn pending_transaction_filters_report_transactions_sent_through_the_client() {
    let mut fixture = LogsFixture::new();
    let polled = fixture.get("eth_newPendingTransactionFilter", json!([]));
    let subscribed = fixture.get("eth_subscribe", json!(["newPendingTransactions"]));
    fixture.dev.get("evm_setAutomine", json!([false]));
    let signed = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x1"}]);
    let raw = fixture.dev.get("eth_signTransaction", signed);
    fixture.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_sendRawTransaction" => {
            Err(rootlight::light::RequestFailure::Rpc { code: -32010, message: "already known".into() })
        }
        _ => answer,
    }));
    let hash = fixture.get("eth_sendRawTransaction", json!([raw]));
    for id in [polled, subscribed] {
        assert_eq!(fixture.changes(&id), std::slice::from_ref(&hash));
        assert!(fixture.changes(&id).is_empty());
    }
}

/// A caller of an asker, which may be a page of another origin.
fn asker(number: u64, page: Option<&str>) -> Option<Arc<Caller>> {
    frame(number, page, 1)
}

/// As [`asker`], of a page that may be a frame without an origin.
fn frame(number: u64, page: Option<&str>, frame: u64) -> Option<Arc<Caller>> {
    let caller = Caller::new(number, 100 + number).with_subscriptions(9);
    Some(Arc::new(caller.from_foreign_page(page.map(str::to_owned), frame)))
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

fn shown_to_their_asker_alone(sender: Option<Arc<Caller>>, askers: [Option<Arc<Caller>>; 4]) {
    let mut fixture = LogsFixture::new();
    let watch = |fixture: &mut LogsFixture| {
        let polled = fixture.get("eth_newPendingTransactionFilter", json!([]));
        [polled, fixture.get("eth_subscribe", json!(["newPendingTransactions"]))]
    };
    fixture.light.caller = sender.clone();
    let own = watch(&mut fixture);
    let theirs = askers.clone().map(|asker| {
        fixture.light.caller = asker;
        watch(&mut fixture)
    });
    fixture.dev.get("evm_setAutomine", json!([false]));
    let signed = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x1"}]);
    let raw = fixture.dev.get("eth_signTransaction", signed);
    let hash = fixture.dev.get("eth_sendRawTransaction", json!([raw]));
    // The upstream has the transaction in its pool.
    fixture.light.upstream.chain = fixture.dev.client.snapshot();
    fixture.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_sendRawTransaction" => {
            Err(rootlight::light::RequestFailure::Rpc { code: -32010, message: "already known".into() })
        }
        _ => answer,
    }));
    fixture.light.caller = sender.clone();
    assert_eq!(fixture.get("eth_sendRawTransaction", json!([raw])), hash);
    let shown = |fixture: &mut LogsFixture| {
        let found = fixture.get("eth_getTransactionByHash", json!([hash]));
        (found["hash"].clone(), fixture.get("eth_getTransactionCount", json!([ALICE, "pending"])))
    };
    assert_eq!(shown(&mut fixture), (hash.clone(), json!("0x2")));
    for id in own {
        assert_eq!(fixture.changes(&id), std::slice::from_ref(&hash));
    }
    for (asker, ids) in askers.iter().zip(theirs) {
        fixture.light.caller = asker.clone();
        assert_eq!(shown(&mut fixture), (Value::Null, json!("0x1")), "{asker:?}");
        for id in &ids {
            assert!(fixture.changes(id).is_empty(), "{asker:?}");
        }
        // No method of the table tells of it.
        let marks = |fixture: &mut LogsFixture, hash: &Value| -> Vec<String> {
            let about = CallSubjects { hash: hash.clone(), account: ALICE.into(), filter: ids[0].clone() };
            let calls = methods().filter(|method| !method.writes() && !method.uses_filters());
            let calls = calls.flat_map(|method| params(method, &about).map(|params| (method.name, params)));
            let answers =
                calls.map(|(name, params)| format!("{name}: {}", fixture.light.send(name, &params)));
            // Some answers repeat what was asked.
            answers.map(|text| text.replace(hash.as_str().unwrap(), "HASH")).collect()
        };
        let unknown = Value::from(format!("0x{}", "ab".repeat(32)));
        // The first time, the client learns what its upstream can do.
        marks(&mut fixture, &unknown);
        for (sent, unsent) in marks(&mut fixture, &hash).iter().zip(&marks(&mut fixture, &unknown)) {
            assert_eq!(sent, unsent, "{asker:?}");
        }
    }
    // A caller that has sent the transaction too is shown it, and so are all once it is mined.
    fixture.light.caller = askers[0].clone();
    assert_eq!(fixture.get("eth_getTransactionByHash", json!([hash, raw]))["hash"], hash);
    assert_eq!(fixture.get("eth_sendRawTransaction", json!([raw])), hash);
    assert_eq!(shown(&mut fixture), (hash.clone(), json!("0x2")));
    fixture.dev.get("evm_mine", json!([]));
    fixture.follow();
    for asker in askers {
        fixture.light.caller = asker;
        assert_eq!(shown(&mut fixture), (hash.clone(), json!("0x2")));
    }
}

/// The hash of a pending transaction proves its content, but only the upstream says that it is pending.
#[test]
fn a_pending_transaction_must_match_its_hash() {
    let mut fixture = LogsFixture::new();
    fixture.dev.get("evm_setAutomine", json!([false]));
    let sent = json!([{"from": ALICE, "to": BOB, "value": "0x5", "gas": "0x5208"}]);
    let hash = fixture.dev.get("eth_sendTransaction", sent);
    fixture.follow();
    let theirs = fixture.dev.get("eth_getTransactionByHash", json!([hash]));
    assert_eq!(theirs["blockHash"], Value::Null);
    fixture.light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_getTransactionByHash" => {
            let mut changed: Value = serde_json::from_str(answer?.get()).unwrap();
            changed["value"] = "0x6".into();
            Ok(serde_json::value::to_raw_value(&changed).unwrap())
        }
        _ => answer,
    }));
    let error = fixture.light.call("eth_getTransactionByHash", &json!([hash])).unwrap_err();
    assert_eq!(error["code"], -32002, "{error}");
    fixture.light.upstream.change = None;
    assert_eq!(fixture.get("eth_getTransactionByHash", json!([hash])), theirs);
    assert_eq!(fixture.get("eth_getTransactionReceipt", json!([hash])), Value::Null);
}

#[test]
fn the_gas_price_comes_from_the_verified_head() {
    let mut fixture = LogsFixture::new();
    let minimum = fixture.get("eth_getBlockByNumber", json!(["latest", false]))["minimumGasPrice"].clone();
    let minimum = support::u64_of(minimum.as_str().unwrap());
    fixture.light.asked();
    assert_eq!(fixture.get("eth_gasPrice", json!([])), format!("{:#x}", minimum * 11 / 10));
    assert!(fixture.light.asked().is_empty());
    assert_eq!(fixture.dev.get("eth_gasPrice", json!([])), format!("{:#x}", minimum * 11 / 10));
}

#[test]
fn invalid_subscriptions_are_invalid_parameters() {
    let mut fixture = LogsFixture::new();
    for params in [json!(["blocks"]), json!([]), json!([7]), json!(["logs", {"address": "0x1"}])] {
        let error = fixture.light.call("eth_subscribe", &params).unwrap_err();
        assert_eq!(error["code"], -32602, "{params} {error}");
    }
    assert_eq!(fixture.get("eth_unsubscribe", json!(["0x12"])), false);
}

/// A local chain sends no notifications unless its host supports them.
#[test]
fn subscriptions_without_notifications_are_refused() {
    let mut fixture = LogsFixture::new();
    let error = fixture.dev.ask("eth_subscribe", json!(["newHeads"]));
    assert_eq!(error["error"]["code"], -32601);
    assert!(
        error["error"]["message"].as_str().unwrap().starts_with("notifications not supported"),
        "{error}"
    );
}

/// The number of blocks and of logs that can be taken back is limited.
#[test]
fn only_remembered_blocks_and_logs_are_taken_back() {
    let mut fixture = LogsFixture::new();
    let id = fixture.get("eth_newFilter", json!([{"address": fixture.contract}]));
    assert!(fixture.changes(&id).is_empty());
    let before = fixture.dev.get("evm_snapshot", json!([]));
    fixture.block(true);
    fixture.follow();
    assert_eq!(marks(&fixture.changes(&id)), [("0x2", false)]);
    fixture.empty(256);
    fixture.block(true);
    fixture.follow();
    assert_eq!(marks(&fixture.changes(&id)), [("0x103", false)]);
    fixture.dev.get("evm_revert", json!([before]));
    fixture.empty(260);
    fixture.follow();
    assert_eq!(marks(&fixture.changes(&id)), [("0x103", true)], "256 blocks are remembered");

    let mut fixture = LogsFixture::with(LOGS_MANY);
    let id = fixture.get("eth_newFilter", json!([{"address": fixture.contract}]));
    assert!(fixture.changes(&id).is_empty());
    let before = fixture.dev.get("evm_snapshot", json!([]));
    for _ in 0..5 {
        let data = format!("{:#066x}", 1_000);
        let call = json!([{"from": ALICE, "to": fixture.contract, "data": data, "gas": "0x1e8480"}]);
        fixture.dev.get("eth_sendTransaction", call);
        fixture.follow();
        assert_eq!(fixture.changes(&id).len(), 1_000);
    }
    fixture.dev.get("evm_revert", json!([before]));
    fixture.empty(6);
    fixture.follow();
    let back = fixture.changes(&id);
    assert!(back.iter().all(|log| log["removed"] == true && log["blockNumber"] != "0x2"));
    assert_eq!(back.len(), 4_000, "4,096 logs are remembered");
}

/// A request covers at most 2,000 blocks. A subscription that was not polled for longer continues with the newest of
/// them.
#[test]
fn a_range_is_limited_and_a_subscription_skips_older_blocks() {
    let mut fixture = LogsFixture::new();
    let logs = json!({"address": fixture.contract, "fromBlock": "0x1"});
    let subscribed = fixture.get("eth_subscribe", json!(["logs", {"address": fixture.contract}]));
    let polled = fixture.get("eth_newFilter", json!([logs]));
    assert!(fixture.changes(&subscribed).is_empty());
    fixture.block(true);
    fixture.empty(1_998);
    fixture.block(true);
    fixture.follow();
    let found = fixture.get("eth_getLogs", json!([{"address": fixture.contract, "fromBlock": "0x2"}]));
    assert_eq!(marks(found.as_array().unwrap()), [("0x2", false), ("0x7d1", false)], "2,000 blocks");
    for (method, params) in [("eth_getLogs", json!([logs])), ("eth_getFilterChanges", json!([polled]))] {
        let error = fixture.light.call(method, &params).unwrap_err();
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
            fixture.light.call("eth_getLogs", &json!([filter])).unwrap_err()["code"],
            -32602,
            "{filter}"
        );
    }
    fixture.block(false);
    fixture.follow();
    assert_eq!(marks(&fixture.changes(&subscribed)), [("0x7d1", false)]);
    // The number of headers for other clients is limited too.
    let headers = fixture.get("rootlight_getHeaders", json!(["0x10", "0x400"]));
    let headers = decode_headers(headers.as_str().unwrap(), 1_024, &Network::regtest()).unwrap();
    assert_eq!((headers.len(), headers[255].0.header().number), (256, 0x10f));
}

/// As in the reference node, 2,000 blocks may return any number of logs, and longer ranges 10,000.
#[test]
fn logs_of_a_local_chain_are_limited_in_number_and_bytes() {
    let mut fixture = LogsFixture::with(LOGS_MANY);
    for _ in 0..11 {
        let data = format!("{:#066x}", 1_000);
        let call = json!([{"from": ALICE, "to": fixture.contract, "data": data, "gas": "0x1e8480"}]);
        fixture.dev.get("eth_sendTransaction", call);
    }
    fixture.empty(1_989);
    let before = fixture.dev.get("evm_snapshot", json!([]));
    let from = |block: &str| json!([{"address": fixture.contract, "fromBlock": block}]);
    let (two_thousand, more, less) = (from("0x2"), from("0x1"), from("0x4"));
    assert_eq!(fixture.dev.get("eth_getLogs", two_thousand).as_array().unwrap().len(), 11_000);
    assert_eq!(fixture.dev.refused("eth_getLogs", more.clone()).0, -32012);
    // No answer is longer than 10 MiB.
    for _ in 0..6 {
        let data = format!("{:#066x}", 5_000);
        let call = json!([{"from": ALICE, "to": fixture.contract, "data": data, "gas": "0x5b8d80"}]);
        fixture.dev.get("eth_sendTransaction", call);
    }
    let (code, words) = fixture.dev.refused("eth_getLogs", from("0x7d2"));
    assert!(code == -32011 && words.contains("10485760"), "{code} {words}");
    fixture.dev.get("evm_revert", json!([before]));
    fixture.empty(3);
    assert_eq!(fixture.dev.get("eth_getLogs", less).as_array().unwrap().len(), 9_000);
    assert_eq!(fixture.dev.refused("eth_getLogs", more).0, -32012);
}
