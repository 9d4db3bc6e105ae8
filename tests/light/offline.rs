//! Offline checks of documents: the proven facts, and the rule that a changed document breaks.

use alloy_primitives::{Bloom, hex};
use rootlight::consensus::Network;
use rootlight::trie::{index_key, ordered_trie};
use rootlight::types::Receipt;
use rootlight::verify::{Report, Rule, verify_account, verify_receipt};
use serde_json::{Value, json};

fn vector(name: &str) -> Value {
    let all: Value =
        serde_json::from_str(include_str!("../vectors/offline.json")).expect("the vectors are JSON");
    all[name].clone()
}

/// The report, as an error if a check failed.
fn outcome(report: Report) -> Result<Report, Report> {
    if report.verified() { Ok(report) } else { Err(report) }
}

fn check_receipt(text: &str) -> Result<Report, Report> {
    outcome(verify_receipt(text.as_bytes(), Some(&Network::regtest())))
}

fn check_account(text: &str) -> Result<Report, Report> {
    outcome(verify_account(text.as_bytes(), Some(&Network::regtest())))
}

fn receipt(document: &Value) -> Result<Report, Report> {
    check_receipt(&document.to_string())
}

fn account(document: &Value) -> Result<Report, Report> {
    check_account(&document.to_string())
}

fn broken(outcome: Result<Report, Report>) -> (Rule, String) {
    let failure = outcome.expect_err("the document must be refused").failed.expect("a failure");
    (failure.rule, failure.reason)
}

/// Every change of one hexadecimal digit of a string in the document, one at a time.
fn each_digit(document: &Value, pointer: &str, mut check: impl FnMut(Value)) {
    let text = document.pointer(pointer).and_then(Value::as_str).expect("a string").to_owned();
    for at in 2..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
        let mut copy = document.clone();
        *copy.pointer_mut(pointer).expect("a string") = json!(String::from_utf8(changed).expect("ASCII"));
        check(copy);
    }
}

#[test]
fn a_receipt_is_proven_with_its_logs() {
    let report = receipt(&vector("receipt")).expect("the receipt is proven");
    assert_eq!(report.value("index").as_deref(), Some("5"));
    assert_eq!(report.value("status").as_deref(), Some("success"));
    assert_eq!(report.value("gasUsed").as_deref(), Some("496108"));
    assert_eq!(
        report.value("logs[0].address").as_deref(),
        Some("0xe0825f57dd05ef62ff731c27222a86e104cc4cad")
    );
    let rules: Vec<Rule> = report.checks.iter().map(|c| c.rule).collect();
    assert_eq!(rules, [Rule::Document, Rule::ReceiptInclusion, Rule::Document, Rule::ReceiptBloom]);
}

#[test]
fn the_index_of_a_receipt_comes_from_the_proof() {
    let mut document = vector("receipt");
    document.as_object_mut().expect("an object").remove("index");
    assert_eq!(receipt(&document).expect("proven").value("index").as_deref(), Some("5"));
    document["index"] = json!(4);
    assert_eq!(broken(receipt(&document)).0, Rule::ReceiptInclusion);
}

#[test]
fn a_json_rpc_answer_is_accepted_in_place_of_its_result() {
    let mut document = vector("receipt");
    document["receipt"] = json!({"jsonrpc": "2.0", "id": 1, "result": document["receipt"]});
    document["nodes"] = json!({"jsonrpc": "2.0", "id": 2, "result": document["nodes"]});
    assert!(receipt(&document).is_ok());
    document["nodes"] = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "x"}});
    assert_eq!(broken(receipt(&document)).0, Rule::Document);
    let mut document = vector("account");
    document["proof"] = json!({"jsonrpc": "2.0", "id": 1, "result": document["proof"]});
    assert!(account(&document).is_ok());
}

#[test]
fn every_changed_digit_of_a_receipt_proof_is_refused() {
    let document = vector("receipt");
    let mut count = 0;
    let mut refused = |copy: Value| {
        assert!(receipt(&copy).is_err(), "{copy}");
        count += 1;
    };
    each_digit(&document, "/receiptsRoot", &mut refused);
    each_digit(&document, "/receipt", &mut refused);
    for node in 0..document["nodes"].as_array().expect("a list").len() {
        each_digit(&document, &format!("/nodes/{node}"), &mut refused);
    }
    assert!(count > 1000, "{count} changes");
}

/// A document that proves one of a block's receipts.
fn one_of(receipts: &[Receipt], index: usize) -> Value {
    let encoded: Vec<Vec<u8>> = receipts.iter().map(Receipt::encode).collect();
    let trie = ordered_trie(&encoded);
    let nodes = trie.proof(&index_key(index as u64));
    json!({"receiptsRoot": trie.root(), "receipt": hex::encode_prefixed(&encoded[index]), "nodes": nodes})
}

/// A list of one or two nodes is read as a list, not as a JSON-RPC answer.
#[test]
fn receipts_of_small_blocks_are_proven() {
    let receipts: Vec<Receipt> = (1..=5).map(|gas| Receipt::new(true, gas, gas, Vec::new())).collect();
    let mut lengths = Vec::new();
    for count in 1..=receipts.len() {
        for index in 0..count {
            let mut document = one_of(&receipts[..count], index);
            document["index"] = json!(index);
            lengths.push(document["nodes"].as_array().expect("a list").len());
            let report = receipt(&document).expect("proven");
            assert_eq!(report.value("index").as_deref(), Some(index.to_string().as_str()));
        }
    }
    assert!([1, 2].iter().all(|length| lengths.contains(length)), "{lengths:?}");
}

#[test]
fn a_receipt_tells_whether_its_transaction_succeeded() {
    for (success, status) in [(true, "success"), (false, "failure")] {
        let report =
            receipt(&one_of(&[Receipt::new(success, 21_000, 21_000, Vec::new())], 0)).expect("proven");
        assert_eq!(report.value("status").as_deref(), Some(status));
    }
}

#[test]
fn a_receipt_with_another_bloom_is_refused() {
    let mut other = Receipt::new(true, 21_000, 21_000, Vec::new());
    other.logs_bloom = Bloom::repeat_byte(1);
    assert_eq!(broken(receipt(&one_of(&[other], 0))).0, Rule::ReceiptBloom);
}

#[test]
fn an_account_is_proven_with_its_slots() {
    let report = account(&vector("account")).expect("the account is proven");
    assert_eq!(report.value("exists").as_deref(), Some("true"));
    assert_eq!(report.value("storage[0x2]").as_deref(), Some("0xd3c21bcecceda1000000"));
    assert_eq!(report.value("storage[0x63]").as_deref(), Some("0x0"));
    assert_eq!(
        report.value("codeHash").as_deref(),
        Some("0x50d391c900ac6bc394009f550fcb39009adc9846304a6594bc988b727a455f8f")
    );
}

#[test]
fn absence_of_an_account_is_proven() {
    let mut document = vector("absentAccount");
    let report = account(&document).expect("the absence is proven");
    assert_eq!(report.value("exists").as_deref(), Some("false"));
    assert_eq!(report.value("balance").as_deref(), None);
    // An account without code has the hash of empty code, but here no account exists.
    let none = json!("0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    for (hash, proven) in [
        (none, false),
        (json!(format!("0x{}", "00".repeat(32))), true),
        (json!(format!("0x{}", "01".repeat(32))), false),
    ] {
        document["proof"]["codeHash"] = hash;
        assert_eq!(account(&document).is_ok(), proven, "{}", document["proof"]["codeHash"]);
    }
    document["proof"]["codeHash"] = json!(format!("0x{}", "00".repeat(32)));
    document["proof"]["balance"] = json!("0x1");
    assert_eq!(broken(account(&document)), (Rule::StateValues, "stated as 0x1, proven is 0x0".into()));
}

#[test]
fn claims_that_the_nodes_do_not_prove_are_refused() {
    for (pointer, claim) in [
        ("/proof/nonce", "0x7"),
        ("/proof/balance", "0x1"),
        ("/proof/codeHash", "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        ("/proof/storageProof/2/value", "0xd3c21bcecceda1000001"),
        ("/proof/storageProof/4/value", "0x1"),
    ] {
        let mut document = vector("account");
        *document.pointer_mut(pointer).expect("a member") = json!(claim);
        assert_eq!(broken(account(&document)).0, Rule::StateValues, "{pointer}");
    }
}

#[test]
fn a_proof_for_other_keys_is_refused() {
    let mut document = vector("account");
    document["proof"]["address"] = json!("0x7986b3df570230288501eea3d890bd66948c9b79");
    assert_eq!(broken(account(&document)).0, Rule::StateProof);
    let mut document = vector("account");
    document["proof"]["storageProof"][2]["key"] = json!("0x8");
    assert_eq!(broken(account(&document)).0, Rule::StateProof);
    let mut document = vector("account");
    document["proof"]["storageProof"].as_array_mut().expect("a list").remove(2);
    assert!(account(&document).is_ok(), "fewer slots are proven by fewer nodes");
    document["proof"]["accountProof"][3] = json!("0x4c00");
    assert_eq!(broken(account(&document)).0, Rule::StateProof);
}

#[test]
fn every_changed_digit_of_an_absence_proof_is_refused() {
    let document = vector("absentAccount");
    let mut count = 0;
    let mut refused = |copy: Value| {
        assert!(account(&copy).is_err(), "{copy}");
        count += 1;
    };
    each_digit(&document, "/stateRoot", &mut refused);
    for node in 0..document["proof"]["accountProof"].as_array().expect("a list").len() {
        each_digit(&document, &format!("/proof/accountProof/{node}"), &mut refused);
    }
    assert!(count > 800, "{count} changes");
}

#[test]
fn invalid_documents_are_refused() {
    for text in [
        "",
        "{}",
        "[]",
        "null",
        "7",
        "\"0x\"",
        "{\"receiptsRoot\":\"0x00\",\"receipt\":\"0x\",\"nodes\":[]}",
        "{\"stateRoot\":1}",
    ] {
        assert_eq!(broken(check_receipt(text)).0, Rule::Document, "{text}");
        assert_eq!(broken(check_account(text)).0, Rule::Document, "{text}");
    }
    let huge = format!("\"{}\"", "0".repeat(65 * 1024 * 1024));
    assert_eq!(broken(check_receipt(&huge)).0, Rule::Document);
}

#[test]
fn reports_and_failures_serialize() {
    let report = serde_json::to_value(receipt(&vector("receipt")).expect("proven")).expect("JSON");
    assert_eq!(report["facts"]["index"], json!("5"));
    assert_eq!(report["checks"][1]["rule"], json!("receiptInclusion"));
    let mut document = vector("receipt");
    document["nodes"] = json!([]);
    let failure = serde_json::to_value(receipt(&document).expect_err("refused")).expect("JSON");
    assert_eq!(failure["failed"]["rule"], json!("receiptInclusion"));
    assert_eq!(failure["checks"][0]["rule"], json!("document"));
}

#[test]
fn a_document_above_the_size_limit_is_refused() {
    let huge = format!("{{\"pad\": \"{}\"}}", "x".repeat(64 * 1024 * 1024));
    let (_, reason) = broken(check_receipt(&huge));
    assert!(reason.contains("at most 67108864 are accepted"), "{reason}");
}
