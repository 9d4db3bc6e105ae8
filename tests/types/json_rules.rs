//! One test for each rule of rebuilding headers, transactions and receipts from JSON. Each input breaks only
//! one rule.

use crate::support;

use rootlight::types::json::{
    JsonError, block_from_json, header_from_json, receipt_from_json, transaction_from_json,
};
use rootlight::types::{Address, B256, FieldError, FieldRule, Header};
use serde_json::{Value, json};
use support::shapes::{mainnet, regtest};

/// The JSON of a recorded block.
fn block_json() -> Value {
    let text = include_str!("../vectors/chain_trimmed/blocks.jsonl");
    let line: Value = serde_json::from_str(text.lines().nth(3).unwrap()).unwrap();
    line["response"]["result"].clone()
}

fn rebuilt(json: &Value) -> Result<B256, JsonError> {
    header_from_json(&json.to_string(), None, &regtest).map(|header| header.hash())
}

#[test]
fn json_numbers_are_read_in_every_notation() {
    let mut json = block_json();
    let expected = rebuilt(&json).unwrap();
    let decimal = |value: &Value| support::u64_of(value.as_str().unwrap());
    for name in ["number", "gasLimit", "gasUsed", "timestamp", "difficulty", "paidFees", "minimumGasPrice"] {
        let value = decimal(&json[name]);
        for form in [json!(value), json!(value.to_string()), json!(format!("0x{value:030x}"))] {
            json[name] = form;
            assert_eq!(rebuilt(&json), Ok(expected), "{name}");
        }
    }
    // A number above the integers of JSON libraries.
    let text =
        json.to_string().replace("\"difficulty\":", "\"difficulty\":1000000000000000000000000000000,\"x\":");
    assert!(matches!(header_from_json(&text, None, &regtest), Err(JsonError::Hash { .. })));
}

#[test]
fn json_fields_that_break_a_rule_are_refused() {
    let length = |expected, found| FieldRule::Length { expected, found };
    let cases: Vec<(&str, Value, &'static str, FieldRule)> = vec![
        ("number", json!(null), "block.number", FieldRule::Missing),
        ("number", json!("0x"), "block.number", FieldRule::NotANumber),
        ("number", json!("12a"), "block.number", FieldRule::NotANumber),
        ("number", json!("0x1g"), "block.number", FieldRule::NotANumber),
        ("number", json!(-1), "block.number", FieldRule::NotANumber),
        ("number", json!(1.5), "block.number", FieldRule::NotANumber),
        ("number", json!([1]), "block.number", FieldRule::NotANumber),
        ("number", json!("0x8000000000000000"), "block.number", FieldRule::TooLarge(63)),
        ("difficulty", json!(format!("0x1{}", "0".repeat(64))), "block.difficulty", FieldRule::TooLarge(256)),
        ("difficulty", json!("9".repeat(78)), "block.difficulty", FieldRule::TooLarge(256)),
        ("difficulty", json!("9".repeat(5000)), "block.difficulty", FieldRule::TooLarge(256)),
        ("parentHash", json!("0x00"), "block.parentHash", length(32, 1)),
        ("parentHash", json!("00".repeat(32)), "block.parentHash", FieldRule::NotHex),
        ("parentHash", json!(format!("0x{}", "zz".repeat(32))), "block.parentHash", FieldRule::NotHex),
        ("parentHash", json!(5), "block.parentHash", FieldRule::NotHex),
        ("miner", json!(null), "block.miner", FieldRule::Missing),
        ("miner", json!("0x00"), "block.miner", length(20, 1)),
        ("extraData", json!("0x0"), "block.extraData", FieldRule::NotHex),
        ("extraData", json!("00"), "block.extraData", FieldRule::NotHex),
        ("extraData", json!("0x0x00"), "block.extraData", FieldRule::NotHex),
        (
            "extraData",
            json!(format!("0x{}", "00".repeat(65_537))),
            "block.extraData",
            FieldRule::TooLong { limit: 65_536, found: 65_537 },
        ),
        ("uncles", json!("0x"), "block.uncles", FieldRule::NotAnArray),
        ("rskPteEdges", json!([65_536]), "block.rskPteEdges", FieldRule::TooLarge(16)),
        ("rskPteEdges", json!([-32_769]), "block.rskPteEdges", FieldRule::NotANumber),
        ("rskPteEdges", json!({"a": 1}), "block.rskPteEdges", FieldRule::NotAnArray),
        ("hash", json!(null), "block.hash", FieldRule::Missing),
    ];
    for (name, value, field, rule) in cases {
        let mut json = block_json();
        json[name] = value;
        assert_eq!(rebuilt(&json), Err(JsonError::Field(FieldError { field, rule })), "{name}");
    }
}

#[test]
fn json_must_be_one_object() {
    let read = |text: &str| header_from_json(text, None, &mainnet);
    assert!(matches!(read(""), Err(JsonError::Syntax { object: "block", .. })));
    assert!(matches!(read("{"), Err(JsonError::Syntax { .. })));
    assert!(matches!(read(&"[".repeat(100_000)), Err(JsonError::Syntax { .. } | JsonError::NotAnObject(_))));
    assert_eq!(read("null"), Err(JsonError::NotAnObject("block")));
    assert_eq!(read("{\"number\":1,\"number\":2}"), Err(JsonError::NotAnObject("block")));
    let deep = format!("{{\"uncles\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(&deep).is_err());
}

#[test]
fn a_header_must_have_the_claimed_hash() {
    let json = block_json();
    let claimed = rebuilt(&json).unwrap();
    let mut changed = json.clone();
    changed["timestamp"] = json!("0x1");
    assert!(matches!(rebuilt(&changed), Err(JsonError::Hash { object: "header", tried: 44, .. })));
    // Fields that are not hashed may have any value that parses.
    changed = json.clone();
    changed["totalDifficulty"] = json!("0x5");
    changed["nonce"] = json!({"deep": [1, 2, 3]});
    changed["somethingNew"] = json!("x");
    assert_eq!(rebuilt(&changed), Ok(claimed));
    let other = header_from_json(&json.to_string(), Some(B256::repeat_byte(1)), &regtest);
    assert!(matches!(other, Err(JsonError::Hash { .. })));
    // Negative edges are signed 16-bit numbers, as the reference node prints them.
    let header = header_from_json(&json.to_string(), None, &regtest).unwrap().into_header();
    let edged = Header { edges: vec![0x8000, 0xffff], ..header }.seal();
    changed = json;
    changed["rskPteEdges"] = json!([-32_768, -1]);
    changed["hash"] = json!(edged.hash().to_string());
    assert_eq!(rebuilt(&changed), Ok(edged.hash()));
}

#[test]
fn transactions_in_a_block_must_have_their_hashes() {
    let text = include_str!("../vectors/chain_trimmed/blocks.jsonl");
    let line: Value = serde_json::from_str(text.lines().nth(2).unwrap()).unwrap();
    let json = line["response"]["result"].clone();
    assert!(block_from_json(&json.to_string(), None, &regtest, 33).is_ok());
    for (name, value) in
        [("value", json!("0x7")), ("nonce", json!("0x77")), ("r", json!("0x1")), ("v", json!("0x70"))]
    {
        let mut changed = json.clone();
        changed["transactions"][0][name] = value;
        let result = block_from_json(&changed.to_string(), None, &regtest, 33);
        assert!(matches!(result, Err(JsonError::Hash { object: "transaction", .. })), "{name}");
        let alone = changed["transactions"][0].to_string();
        assert!(matches!(transaction_from_json(&alone, None, 33), Err(JsonError::Hash { .. })));
    }
    // A list may not contain both hashes and whole transactions.
    let mut mixed = json.clone();
    mixed["transactions"] = json!([json["transactions"][0]["hash"], json["transactions"][0]]);
    assert!(block_from_json(&mixed.to_string(), None, &regtest, 33).is_err());
}

#[test]
fn receipt_json_that_breaks_a_rule_is_refused() {
    let good = json!({
        "status": "0x1", "gasUsed": 5, "cumulativeGasUsed": "0x6", "logs": [
            {"address": Address::ZERO.to_string(), "topics": [B256::ZERO.to_string()], "data": "0x00"}
        ]
    });
    let mut receipt = receipt_from_json(&good.to_string()).unwrap();
    assert!(receipt.bloom_matches() && receipt.success);
    assert!(receipt.read_zero_byte_data_as_empty());
    assert!(!receipt.read_zero_byte_data_as_empty());
    let cases: Vec<(&str, Value, &'static str, FieldRule)> = vec![
        ("status", json!(null), "receipt.status", FieldRule::Missing),
        ("status", json!("0x2"), "receipt.status", FieldRule::Value { expected: 1, found: 2 }),
        ("logs", json!(null), "receipt.logs", FieldRule::Missing),
        ("logs", json!([null]), "receipt.logs", FieldRule::Missing),
        ("logs", json!([{}]), "log.topics", FieldRule::Missing),
        ("logs", json!([{"topics": []}]), "log.address", FieldRule::Missing),
        ("gasUsed", json!("0x8000000000000000"), "receipt.gasUsed", FieldRule::TooLarge(63)),
        ("cumulativeGasUsed", json!("x"), "receipt.cumulativeGasUsed", FieldRule::NotANumber),
        ("logsBloom", json!("0x00"), "receipt.logsBloom", FieldRule::Length { expected: 256, found: 1 }),
    ];
    for (name, value, field, rule) in cases {
        let mut changed = good.clone();
        changed[name] = value;
        let expected = Err(JsonError::Field(FieldError { field, rule }));
        assert_eq!(receipt_from_json(&changed.to_string()), expected, "{name}");
    }
}
