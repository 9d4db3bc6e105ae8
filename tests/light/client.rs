//! The light client with complete recordings as its upstream: every answer comes from verified data and equals the
//! recorded one.

use crate::support;

use std::collections::BTreeMap;

use rootlight::consensus::Network;
use serde_json::Value;
use support::{
    chain::{lines, text},
    shared,
    upstream::{Harness, RecordedUpstream},
};

/// The newest recorded block.
const HEAD: u64 = 676;

fn recording(head: u64) -> Option<RecordedUpstream> {
    Some(RecordedUpstream::open(&shared()?.join("vectors/chain"), head))
}

fn recorded(file: &str) -> Vec<Value> {
    lines(&shared().unwrap().join("vectors/chain").join(format!("{file}.jsonl")))
}

/// Compares our answers with the recorded ones. Returns the number of equal answers by method.
fn compare(
    harness: &mut Harness<'_>,
    file: &str,
    wanted: impl Fn(&str, &Value) -> bool,
    same: impl Fn(&str, Value, Value) -> bool,
) -> BTreeMap<String, usize> {
    let mut equal = BTreeMap::new();
    for line in recorded(file) {
        let (request, response) = (&line["request"], &line["response"]);
        let method = text(request, "method");
        let Some(theirs) = response.get("result").filter(|_| wanted(method, request)) else { continue };
        let ours = harness.call(method, &request["params"]);
        let ours = ours.unwrap_or_else(|error| panic!("{method} {}: {error}", request["params"]));
        assert!(
            same(method, ours.clone(), theirs.clone()),
            "{method} {}\nours   {ours}\ntheirs {theirs}",
            request["params"]
        );
        *equal.entry(method.to_owned()).or_default() += 1;
    }
    equal
}

fn synced(recording: &RecordedUpstream) -> Harness<'_> {
    let mut harness = Harness::new(recording, Network::regtest());
    harness.sync().unwrap();
    harness
}

#[test]
fn blocks_and_headers_equal_the_recorded_ones() {
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
fn transactions_and_receipts_equal_the_recorded_ones() {
    let Some(recording) = recording(HEAD) else { return };
    let mut harness = synced(&recording);
    for (file, least) in
        [("txs_get", 300), ("receipts", 1_400), ("receipts_raw", 1_400), ("receipt_nodes", 1_000)]
    {
        let equal = compare(&mut harness, file, |_, _| true, |_, a, b| a == b);
        println!("{file}: {equal:?}");
        assert!(equal.values().sum::<usize>() >= least, "{file}: {equal:?}");
    }
}

/// Whether a request is about a block whose state was recorded.
fn has_state(request: &Value, at: usize) -> bool {
    let block = &request["params"][at];
    let number = block.as_str().and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    // The recording has the states of blocks up to this one.
    number.is_some_and(|number| number <= 642)
}

#[test]
fn state_at_recorded_blocks_equals_the_recorded_one() {
    let Some(recording) = recording(642) else { return };
    let mut harness = synced(&recording);
    let place = |method: &str| match method {
        "eth_getBalance" | "eth_getTransactionCount" | "eth_getCode" => Some(1),
        "eth_getStorageAt" => Some(2),
        _ => None,
    };
    let equal = compare(
        &mut harness,
        "rpc_state",
        |method, request| place(method).is_some_and(|at| has_state(request, at)),
        |_, a, b| a == b,
    );
    println!("{equal:?}");
    assert!(equal.len() == 4 && equal.values().all(|count| *count >= 4), "{equal:?}");
}

#[test]
fn calls_at_recorded_blocks_equal_the_recorded_ones() {
    let Some(recording) = recording(644) else { return };
    let mut harness = synced(&recording);
    let (mut equal, mut errors, mut refused, mut different) =
        (0, 0, BTreeMap::<String, usize>::new(), Vec::new());
    for file in ["rpc_call", "rpc_precompiles"] {
        for line in recorded(file) {
            let (request, response) = (&line["request"], &line["response"]);
            let has_block = request["params"][1] == "latest" || has_state(request, 1);
            if text(request, "method") != "eth_call"
                || !has_block
                || request["params"].as_array().unwrap().len() > 2
            {
                continue;
            }
            match (
                harness.call("eth_call", &request["params"]),
                response.get("result"),
                response.get("error"),
            ) {
                (Ok(ours), Some(theirs), _) if &ours == theirs => equal += 1,
                (Err(ours), _, Some(theirs)) if ours == *theirs => errors += 1,
                // For malformed input this program reports invalid parameters, the reference node a parse error or
                // internal error.
                (Err(ours), _, Some(theirs))
                    if ours["code"] == -32602
                        && [-32603, -32700].contains(&theirs["code"].as_i64().unwrap()) =>
                {
                    errors += 1;
                }
                // A gas limit above 2^63 escapes the reference node's gas cap; here the cap applies.
                (Ok(_), Some(_), _) if request["params"][0]["gas"] == "0xffffffffffffffff" => {}
                // A payload that only resembles `Error(string)` breaks the reference node's decoder.
                (Err(ours), _, Some(theirs)) if ours["code"] == -32015 && theirs["code"] == -32603 => {
                    errors += 1
                }
                // Deliberate differences: an exceptional halt is an error, where the reference node answers `0x`, and
                // methods of native contracts that are not simulated are refused.
                (Err(ours), Some(theirs), _) if theirs == "0x" || ours["code"] == -32004 => {
                    *refused.entry(ours["message"].as_str().unwrap().to_owned()).or_default() += 1;
                }
                (ours, theirs, error) => different.push(format!(
                    "{file} {}\n  ours   {ours:.300?}\n  theirs {theirs:.300?} {error:?}",
                    request["params"]
                )),
            }
        }
    }
    println!("equal {equal}, equal errors {errors}, refused {refused:?}");
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert!(equal >= 260 && errors >= 40, "equal {equal}, errors {errors}");
}

/// If any byte of an upstream's responses is changed, a request gets the same answer or an error, never another
/// answer.
#[test]
fn changed_synchronization_data_never_change_an_answer() {
    let Some(recording) = recording(80) else { return };
    let questions = [
        ("eth_blockNumber", serde_json::json!([])),
        ("eth_getBlockByNumber", serde_json::json!(["0x49", true])),
        ("eth_getUncleByBlockNumberAndIndex", serde_json::json!(["0x49", "0x0"])),
        ("eth_getBalance", serde_json::json!(["0x0000000000000000000000000000000001000006", "0x49"])),
    ];
    let mut honest = synced(&recording);
    let truth: Vec<Value> =
        questions.iter().map(|(method, params)| honest.call(method, params).unwrap()).collect();
    let asked = std::mem::take(&mut honest.asked);
    let (mut kept, mut refused) = (0, 0);
    // Each response is changed once; a fixed stride spreads the changed positions.
    for (index, (call, length)) in asked.iter().enumerate() {
        let place = (index * 7919) % length;
        let mut harness = Harness::new(&recording, Network::regtest());
        harness.change = Some((call.clone(), place));
        let synced = harness.sync();
        for ((method, params), truth) in questions.iter().zip(&truth) {
            match harness.call(method, params) {
                Ok(answer) => {
                    assert_eq!(&answer, truth, "{method} with {call:?} changed at {place}, sync {synced:?}");
                    kept += 1;
                }
                Err(error) => {
                    assert!(error["message"].as_str().is_some_and(|text| text.len() > 20), "{error}");
                    refused += 1;
                }
            }
        }
    }
    println!("same answer {kept}, refused {refused}");
    assert!(kept > 0 && refused > 0);
}

/// As above, for data that are fetched to answer a request: every byte of short responses, evenly spread bytes of
/// long ones.
#[test]
fn changed_facts_never_change_an_answer() {
    let Some(recording) = recording(130) else { return };
    let transaction = "0xe60832eaa5ee0abcd6ef05fa33f378dbd2998e8ce1dbcf91ca2a3bf9d5ec78cb";
    let token = "0x83c5541a6c8d2dbad642f385d8d06ca9b6c731ee";
    let balance_of = "0x70a08231000000000000000000000000cd2a3d9f938e13cd947ec05abc7fe734df8dd826";
    let questions = [
        ("eth_getTransactionByHash", serde_json::json!([transaction])),
        ("eth_getTransactionReceipt", serde_json::json!([transaction])),
        ("ext_getRawTransactionReceiptByHash", serde_json::json!([transaction])),
        ("eth_getBalance", serde_json::json!(["0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826", "0x7a"])),
        ("eth_getBalance", serde_json::json!(["0x00000000000000000000000000000000deadbeef", "0x7a"])),
        ("eth_getStorageAt", serde_json::json!([token, "0x2", "0x7a"])),
        ("eth_getCode", serde_json::json!([token, "0x7a"])),
        ("eth_getProof", serde_json::json!([token, ["0x2", "0x999"], "0x7a"])),
        ("eth_call", serde_json::json!([{ "to": token, "data": balance_of }, "0x7a"])),
    ];
    let mut harness = synced(&recording);
    harness.forgetful = true;
    let (mut kept, mut refused) = (0, 0);
    for (method, params) in &questions {
        harness.asked.clear();
        let truth = harness.call(method, params).unwrap_or_else(|error| panic!("{method} {params}: {error}"));
        for (call, length) in std::mem::take(&mut harness.asked) {
            let stride = (length / 150).max(1);
            for place in (0..length).step_by(stride) {
                harness.change = Some((call.clone(), place));
                match harness.call(method, params) {
                    Ok(answer) => {
                        assert_eq!(answer, truth, "{method} {params} with {call:?} changed at {place}");
                        kept += 1;
                    }
                    Err(error) => {
                        assert!(error["message"].as_str().is_some_and(|text| text.len() > 20), "{error}");
                        refused += 1;
                    }
                }
                harness.change = None;
            }
        }
    }
    println!("same answer {kept}, refused {refused}");
    assert!(kept > 20 && refused > 300, "same answer {kept}, refused {refused}");
}

/// A recorded transaction that was mined below a height.
fn mined_before(head: u64) -> Value {
    let lines = recorded("txs_get").into_iter().map(|line| line["response"]["result"].clone());
    let mut mined = lines.filter(|tx| tx["blockNumber"].is_string());
    mined.find(|tx| support::u64_of(text(tx, "blockNumber")) < head).unwrap()
}

/// The first contract of the recording.
fn contract_before(head: u64) -> Value {
    let mut receipts = recorded("receipts").into_iter().map(|line| line["response"]["result"].clone());
    let created =
        receipts.find(|receipt| receipt["contractAddress"].is_string() && receipt["status"] == "0x1");
    let receipt = created.unwrap();
    assert!(support::u64_of(text(&receipt, "blockNumber")) < head);
    receipt["contractAddress"].clone()
}

/// A fact that a verified header commits to exists, even if the upstream does not serve it.
#[test]
fn a_withheld_fact_is_an_error_and_never_an_absence() {
    let Some(mut recording) = recording(60) else { return };
    let mined = mined_before(60);
    let number = &mined["blockNumber"];
    let questions = [
        ("eth_getTransactionByBlockNumberAndIndex", serde_json::json!([number, "0x0"])),
        ("eth_getTransactionReceipt", serde_json::json!([mined["hash"]])),
        ("eth_getBalance", serde_json::json!([mined["from"], number])),
        ("eth_getCode", serde_json::json!([contract_before(60), "0x3c"])),
    ];
    let withheld: [&[&'static str]; 4] = [
        &["eth_getBlockByNumber", "eth_getBlockByHash"],
        &["eth_getTransactionReceipt", "rsk_getRawTransactionReceiptByHash"],
        &["eth_getProof", "rsk_getProof"],
        &["eth_getCode"],
    ];
    for ((method, params), methods) in questions.iter().zip(withheld) {
        let honest = self::recording(60).unwrap();
        let harness = synced(&honest);
        recording.withheld = methods.to_vec();
        let mut harness = Harness { recording: &recording, ..harness };
        let error = harness.call(method, params).expect_err(method);
        let words = text(&error, "message");
        assert!(words.contains("the header commits to it"), "{method}: {error}");
        assert!(!words.contains("add an upstream"), "the upstream has the methods: {error}");
    }
}

/// Absence of a hash cannot be proven: it is reported only if both methods of asking find nothing.
#[test]
fn a_transaction_is_absent_only_if_receipt_and_transaction_are_unknown() {
    let Some(mut recording) = recording(60) else { return };
    let hash = mined_before(60)["hash"].clone();
    let honest = self::recording(60).unwrap();
    recording.withheld = vec!["eth_getTransactionReceipt"];
    let mut harness = Harness { recording: &recording, ..synced(&honest) };
    let params = serde_json::json!([hash]);
    assert_eq!(harness.call("eth_getTransactionByHash", &params).unwrap()["hash"], hash);
    recording.withheld.push("eth_getTransactionByHash");
    let mut harness = Harness { recording: &recording, ..synced(&honest) };
    assert_eq!(harness.call("eth_getTransactionByHash", &params), Ok(Value::Null));
}

#[test]
fn state_from_before_the_unitrie_is_refused() {
    let Some(recording) = recording(20) else { return };
    // The recorded chain starts with the genesis block of the current rules.
    let genesis = Network::regtest().genesis_hash;
    let file = format!(r#"{{"name":"old","rules":{{"rskip126":6}},"genesisHash":"{genesis}"}}"#);
    let network = Network::from_json(&file).unwrap();
    let mut harness = Harness::new(&recording, network);
    harness.sync().unwrap();
    let params = serde_json::json!(["0x0000000000000000000000000000000001000006", "0x5"]);
    let traced = serde_json::json!(["0x6"]);
    for (method, params) in [("eth_getBalance", &params), ("trace_block", &traced)] {
        let error = harness.call(method, params).unwrap_err();
        assert!(text(&error, "message").contains("state proofs unavailable: block 5"), "{method}: {error}");
    }
}

/// The same chain with headers of version 0, as on mainnet today.
#[test]
fn answers_on_a_chain_with_version_0_headers_equal_the_recorded_ones() {
    let Some(shared) = shared() else { return };
    let recording = RecordedUpstream::open(&shared.join("vectors/chain_v0"), 520);
    let network = r#"{"name":"regtest-v0","rules":{"rskip144":-1,"rskip351":-1,"rskip535":-1}}"#;
    let mut harness = Harness::new(&recording, Network::from_json(network).unwrap());
    harness.sync().unwrap();
    for file in ["blocks", "headers_raw", "receipts", "receipts_raw", "receipt_nodes"] {
        for line in lines(&shared.join("vectors/chain_v0").join(format!("{file}.jsonl"))) {
            let (request, Some(theirs)) = (&line["request"], line["response"].get("result")) else {
                continue;
            };
            let ours = harness.call(text(request, "method"), &request["params"]);
            assert_eq!(ours.as_ref(), Ok(theirs), "{request}");
        }
    }
}
