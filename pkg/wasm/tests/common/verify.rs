//! Checks of documents, through the functions that JavaScript calls.

use rootlight_wasm::{keccak256, verify_account, verify_receipt};
use serde_json::{Value, json};

fn vector(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("../../../../tests/vectors/offline.json"))
        .expect("vectors are JSON");
    all[name].clone()
}

fn report(text: &str) -> Value {
    serde_json::from_str(text).expect("a report is JSON")
}

pub fn a_receipt_is_proven() {
    let shown = report(&verify_receipt(&vector("receipt").to_string()));
    assert_eq!(shown["facts"]["gasUsed"], json!("496108"));
}

pub fn every_changed_digit_of_a_receipt_is_refused() {
    let document = vector("receipt");
    let receipt = document["receipt"].as_str().expect("a string").to_owned();
    for at in 2..receipt.len() {
        let digit = if receipt.as_bytes()[at] == b'0' { "1" } else { "0" };
        let mut changed = receipt.clone();
        changed.replace_range(at..=at, digit);
        let mut copy = document.clone();
        copy["receipt"] = json!(changed);
        assert!(report(&verify_receipt(&copy.to_string()))["failed"].is_object(), "digit {at}");
    }
}

pub fn an_account_is_proven() {
    let shown = report(&verify_account(&vector("account").to_string()));
    assert_eq!(shown["facts"]["storage[0x2]"], json!("0xd3c21bcecceda1000000"));
    let absent = report(&verify_account(&vector("absentAccount").to_string()));
    assert_eq!(absent["facts"]["exists"], json!("false"));
}

pub fn a_false_claim_is_refused() {
    let mut document = vector("account");
    document["proof"]["balance"] = json!("0x1");
    let refused = report(&verify_account(&document.to_string()));
    assert_eq!(refused["failed"]["rule"], json!("stateValues"));
}

pub fn keccak_is_keccak() {
    let hash: Vec<String> = keccak256(b"cow").iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hash.concat(), "c85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4");
}
