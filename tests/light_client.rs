//! The light client over whole recordings: every answer from verified data, equal to what the node said.

mod support;

use std::collections::BTreeMap;

use rootlight::consensus::Network;
use serde_json::Value;
use support::{
    chain::{lines, text},
    shared,
    upstream::{Harness, Recording},
};

const HEAD: u64 = 676;

fn recording(head: u64) -> Option<Recording> {
    Some(Recording::open(&shared()?.join("vectors/chain"), head))
}

fn recorded(file: &str) -> Vec<Value> {
    lines(&shared().unwrap().join("vectors/chain").join(format!("{file}.jsonl")))
}

/// Compares our answers with the recorded ones; gives the count of equal answers per method.
fn compare(harness: &mut Harness<'_>, file: &str, wanted: impl Fn(&str, &Value) -> bool, same: impl Fn(&str, Value, Value) -> bool) -> BTreeMap<String, usize> {
    let mut equal = BTreeMap::new();
    for line in recorded(file) {
        let (request, response) = (&line["request"], &line["response"]);
        let method = text(request, "method");
        let Some(theirs) = response.get("result").filter(|_| wanted(method, request)) else { continue };
        let ours = harness.call(method, &request["params"]);
        let ours = ours.unwrap_or_else(|error| panic!("{method} {}: {error}", request["params"]));
        assert!(same(method, ours.clone(), theirs.clone()), "{method} {}\nours   {ours}\ntheirs {theirs}", request["params"]);
        *equal.entry(method.to_owned()).or_default() += 1;
    }
    equal
}

fn synced(recording: &Recording) -> Harness<'_> {
    let mut harness = Harness::new(recording, Network::regtest());
    harness.sync().unwrap();
    harness
}

#[test]
fn blocks_uncles_and_total_difficulties() {
    let Some(recording) = recording(HEAD) else { return };
    let mut harness = synced(&recording);
    assert_eq!(harness.call("eth_blockNumber", &serde_json::json!([])), Ok("0x2a4".into()));
    let blocks = compare(&mut harness, "blocks", |_, _| true, |_, a, b| a == b);
    println!("{blocks:?}");
    assert_eq!(blocks["eth_getBlockByNumber"], 677);
    let headers = compare(&mut harness, "headers_raw", |_, _| true, |_, a, b| a == b);
    println!("{headers:?}");
    compare(&mut harness, "blocks_byhash", |_, _| true, |_, a, b| a == b);
}

#[test]
fn transactions_and_receipts() {
    let Some(recording) = recording(HEAD) else { return };
    let mut harness = synced(&recording);
    for (file, least) in [("txs_get", 300), ("receipts", 1_400), ("receipts_raw", 1_400), ("receipt_nodes", 1_000)] {
        let equal = compare(&mut harness, file, |_, _| true, |_, a, b| a == b);
        println!("{file}: {equal:?}");
        assert!(equal.values().sum::<usize>() >= least, "{file}: {equal:?}");
    }
}
