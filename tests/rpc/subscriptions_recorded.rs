//! Recorded notifications of `newHeads` and `logs` beside those of a chain that imports the recorded blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::dev::{DevConfig, Mining};
use rootlight::rpc::Caller;
use serde_json::{Value, json};

use crate::support::chain::{lines, text};
use crate::support::dev::DevClient;
use crate::support::recording::Recording;
use crate::support::{shared, u64_of};

/// What is compared of a log. The reference node counts `logIndex` per transaction and shows empty data as `0x00`
/// (docs/differences.md).
fn log(mut log: Value) -> Value {
    if log["data"] == "0x00" {
        log["data"] = json!("0x");
    }
    log.as_object_mut().unwrap().remove("logIndex");
    log
}

/// The recorded results by block hash, of a block without repetitions.
fn recorded(session: &[Value], is_kind: impl Fn(&Value) -> bool, hash: &str) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in session {
        let result = &line["got"]["params"]["result"];
        if result.is_object() && is_kind(result) {
            let of = found.entry(text(result, hash).to_owned()).or_default();
            if !of.contains(result) {
                of.push(result.clone());
            }
        }
    }
    found
}

#[test]
fn notifications_are_those_of_the_reference_node() {
    let Some(shared) = shared() else { return };
    let session = lines(&shared.join("vectors/chain/ws_session.jsonl"));
    let heads = recorded(&session, |result| result.get("stateRoot").is_some(), "hash");
    let logs = |result: &Value| result.get("topics").is_some() && result["removed"] == false;
    let logs = recorded(&session, logs, "blockHash");
    let mut dev = DevClient::new(DevConfig { mining: Mining::Manual, ..DevConfig::reference() });
    let caller = Arc::new(Caller::new(1, 1).with_subscriptions(2));
    let ask = |dev: &mut DevClient, method: &str, params: Value| {
        dev.ask_over(&caller, method, &params)["result"].take()
    };
    let subscribed = ["newHeads", "logs"].map(|kind| ask(&mut dev, "eth_subscribe", json!([kind])));
    let (mut same_heads, mut same_logs) = (0, 0);
    for block in Recording::load(&shared.join("vectors/chain"), Network::regtest()).blocks.into_iter().skip(1)
    {
        dev.chain().import(block.block(), None).unwrap();
        let [ours, our_logs] =
            subscribed.each_ref().map(|id| ask(&mut dev, "eth_getFilterChanges", json!([id])));
        let head = &ours.as_array().unwrap()[0];
        if let Some(recorded) = heads.get(text(head, "hash")) {
            let mut recorded = recorded[0].clone();
            recorded.as_object_mut().unwrap().remove("baseEvent");
            assert_eq!(*head, recorded, "block {}", u64_of(text(head, "number")));
            same_heads += 1;
        }
        let Some(recorded) = logs.get(text(head, "hash")) else { continue };
        let ours: Vec<Value> = our_logs.as_array().unwrap().iter().cloned().map(log).collect();
        for recorded in recorded.iter().cloned().map(log) {
            assert!(ours.contains(&recorded), "{recorded} is not among {ours:?}");
            same_logs += 1;
        }
    }
    assert!(same_heads > 500 && same_logs > 100, "{same_heads} heads, {same_logs} logs");
}
