//! `eth_getLogs` on the recorded chain, from receipts that are proven to a light client.

use crate::support;

use rootlight::consensus::Network;
use serde_json::Value;
use support::chain::{lines, text};
use support::tally::RecordedTally;
use support::upstream::{Harness, RecordedUpstream};
use support::{shared, u64_of};

/// Head of the chain when the answers were recorded.
const HEAD: u64 = 0x284;

/// Logs without the field `removed`, which the reference node leaves out here.
fn unmarked(mut logs: Value) -> Value {
    for log in logs.as_array_mut().into_iter().flatten() {
        assert_eq!(log.as_object_mut().unwrap().remove("removed"), Some(false.into()));
    }
    logs
}

/// Removes logs of later blocks: the last answer was recorded some blocks later.
fn up_to_head(mut response: Value) -> Value {
    if let Some(logs) = response["result"].as_array_mut() {
        logs.retain(|log| u64_of(text(log, "blockNumber")) <= HEAD);
    }
    response
}

/// The reason why an answer differs deliberately; `None` if it should be equal.
fn intended(request: &Value, theirs: &Value) -> Option<&'static str> {
    let filter = &request["params"][0];
    let at = |name: &str| filter[name].as_str().unwrap_or_default().to_owned();
    let code = theirs["error"]["code"].as_i64();
    if request["params"] == serde_json::json!([null]) || code == Some(-32603) {
        return Some("internal error of the reference node");
    }
    if !filter.is_object() {
        return Some("a filter that is not an object is refused");
    }
    if filter.get("blockHash").is_some_and(Value::is_null)
        || ["fromBlock", "toBlock"].iter().any(|name| filter.get(*name).is_some_and(Value::is_null))
    {
        return Some("null counts as a missing field");
    }
    match (at("fromBlock").as_str(), at("toBlock").as_str()) {
        _ if filter["blockHash"].as_str().is_some_and(|hash| hash.starts_with("0xabab")) => {
            Some("the recorded upstream has no answer for an unknown block")
        }
        _ if filter["fromBlock"].is_object() => Some("error for a block of another type"),
        ("", "") if code == Some(-32602) => Some("error for an empty block"),
        ("earliest", "earliest") => Some("earliest means block 0 as an end too"),
        ("0x5", "0x3") | ("latest", "0x1") => Some("a range that ends before it starts is refused"),
        ("", _) if filter.get("fromBlock").is_none() && filter.get("toBlock").is_some() => {
            Some("an end without a start is respected")
        }
        _ => None,
    }
}

#[test]
fn logs_equal_the_node() {
    let Some(shared) = shared() else { return };
    let recording = RecordedUpstream::open(&shared.join("vectors/chain"), HEAD);
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    let mut tally = RecordedTally::default();
    for mut line in lines(&shared.join("vectors/chain/rpc_logs.jsonl")) {
        let response = line["response"].take();
        let request = line["request"].clone();
        let ours = harness.call(text(&request, "method"), &request["params"]).map(unmarked);
        line["response"] = up_to_head(response.clone());
        tally.add(&line, &ours, || intended(&request, &response));
    }
    tally.check(40, 15);
}
