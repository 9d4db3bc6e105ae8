//! The development chain compared with a reference node that mines each transaction at once.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use rootlight::consensus::Network;
use rootlight::dev::{DevConfig, Mining};
use serde_json::{Value, json};
use support::dev::DevClient;
use support::recording::{Recording, text_of};
use support::{shared, u64_of, u256};

/// The recorded session of a node with instant mining, from its first block on: hashes, errors and data.
#[test]
fn instant_mining_equals_the_reference() {
    let Some(shared) = shared() else { return };
    let mut dev = DevClient::new(DevConfig::reference());
    let mut compared = 0;
    for line in text_of(&shared.join("vectors/chain/instant_mode.jsonl")).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let method = line["request"]["method"].as_str().unwrap();
        // The fields that the miner chooses and the timestamps differ from the recorded ones.
        if method == "eth_getBlockByNumber" {
            continue;
        }
        let answer = dev.ask(method, line["request"]["params"].clone());
        let of = |part: &str| (line["response"][part].clone(), answer[part].clone());
        for (recorded, found) in [of("result"), of("error")] {
            assert_eq!(found, recorded, "{} {}", line["label"], line["request"]);
        }
        compared += 1;
    }
    println!("{compared} answers equal");
    assert!(compared > 15);
}

/// The recorded chain up to the height at which most calls were recorded.
fn recorded_chain(shared: &std::path::Path, height: u64) -> DevClient {
    let recording = Recording::load(&shared.join("vectors/chain"), Network::regtest());
    let config = DevConfig { mining: Mining::Manual, history: None, ..DevConfig::reference() };
    DevClient::with(config, |chain| {
        for block in recording.up_to(height) {
            chain.import(block.block(), None).unwrap();
        }
    })
}

/// Whether an answer differs deliberately: the reference node reports an internal error where this program names the
/// invalid parameter.
fn is_named_failure(recorded: &Value, found: &Value) -> bool {
    let code = recorded["error"]["code"].as_i64();
    matches!(code, Some(-32603 | -32700)) && found["error"]["code"] == json!(-32602)
}

fn lines(shared: &std::path::Path, file: &str) -> Vec<Value> {
    let text = text_of(&shared.join("vectors/chain").join(file));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn agree(recorded: &Value, found: &Value) -> bool {
    recorded["result"] == found["result"] && recorded["error"] == found["error"]
}

/// Deliberate differences, by label: these bytes are not the ones that the hash covers, and are refused.
const REFUSED: &[&str] =
    &["truncated", "short to", "nonce with leading zero", "nonce of 33 bytes", "value with leading zero"];

#[test]
fn answers_to_raw_transactions_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let mut dev = recorded_chain(&shared, 642);
    let mut equal = 0;
    for line in lines(&shared, "rpc_sendraw.jsonl") {
        let label = line["label"].as_str().unwrap();
        let answer = dev.ask("eth_sendRawTransaction", line["request"]["params"].clone());
        if REFUSED.contains(&label) {
            assert_eq!(answer["error"]["code"], json!(-32602), "{label}");
        } else if !is_named_failure(&line["response"], &answer) {
            assert!(agree(&line["response"], &answer), "{label}: {answer}, recorded {}", line["response"]);
            equal += 1;
        }
        if label == "value with leading zero" {
            // The reference node accepted it as the transaction without the zero.
            let raw = line["request"]["params"][0].as_str().unwrap();
            let canonical = raw.replacen("0xf861", "0xf85f", 1).replacen("8200018066", "018066", 1);
            assert_eq!(dev.get("eth_sendRawTransaction", json!([canonical])), line["response"]["result"]);
        }
    }
    println!("{equal} answers equal");
    assert!(equal >= 30);
    pool_after(&mut dev, &shared);
}

/// Compares the pool and the pending block after these transactions.
fn pool_after(dev: &mut DevClient, shared: &std::path::Path) {
    let mut equal = 0;
    for line in lines(shared, "rpc_pool.jsonl") {
        if line["label"] == json!("after mining") && dev.number("eth_blockNumber", json!([])) == 642 {
            dev.get("evm_mine", json!([]));
        }
        let (method, params) = (line["request"]["method"].as_str().unwrap(), &line["request"]["params"]);
        let answer = dev.ask(method, params.clone());
        let (recorded, found) = (&line["response"]["result"], &answer["result"]);
        match method {
            // Quantities have no leading zeros here.
            "txpool_content" => assert_eq!(normal(found), normal(recorded)),
            "eth_pendingTransactions" => assert_eq!(by_hash(found), by_hash(recorded)),
            "eth_getBlockByNumber" => pending_block(found, recorded),
            // The count includes the REMASC transaction of the pending block; the reference node counts the pool.
            "eth_getBlockTransactionCountByNumber" => {
                assert_eq!(u64_of(found.as_str().unwrap()), u64_of(recorded.as_str().unwrap()) + 1);
            }
            // A pending block has no hash and no number.
            "eth_getTransactionByBlockNumberAndIndex" => assert!(found["blockHash"].is_null()),
            "debug_accountTransactionQuota" if line["response"]["error"].is_object() => {}
            _ => {
                assert_eq!(found, recorded, "{method} {params}");
                equal += 1;
            }
        }
    }
    println!("{equal} answers about the pool equal");
    assert!(equal >= 20);
}

/// Rewrites gas price and value as numbers.
fn normal(content: &Value) -> Value {
    match content {
        Value::Array(all) => all.iter().map(normal).collect(),
        Value::Object(fields) => {
            let number = |key: &str| matches!(key, "gasPrice" | "value");
            let fields = fields.iter().map(|(key, value)| match value.as_str().filter(|_| number(key)) {
                Some(text) => (key.clone(), json!(u256(text).to_string())),
                None => (key.clone(), normal(value)),
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn by_hash(transactions: &Value) -> BTreeMap<String, Value> {
    let all = transactions.as_array().unwrap().iter();
    all.map(|transaction| (transaction["hash"].to_string(), transaction.clone())).collect()
}

/// Compares a pending block, apart from the miner's own bytes, the time and the order among equal prices.
fn pending_block(found: &Value, recorded: &Value) {
    for field in [
        "number",
        "hash",
        "parentHash",
        "difficulty",
        "gasLimit",
        "gasUsed",
        "paidFees",
        "uncles",
        "rskPteEdges",
    ] {
        assert_eq!(found[field], recorded[field], "{field}");
    }
    let hashes = |block: &Value| {
        let all = block["transactions"].as_array().unwrap().iter();
        all.map(|transaction| transaction["hash"].to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(hashes(found), hashes(recorded));
}

#[test]
fn answers_of_the_wallet_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let mut dev = recorded_chain(&shared, 642);
    // The random account of the recorded session, and the one that is made here.
    let recorded_account = "0x57a138949555a3c49d0c896c5caf81200f4c84c5";
    let mut own_account = recorded_account.to_owned();
    let mut equal = 0;
    for line in lines(&shared, "rpc_wallet.jsonl") {
        let method = line["request"]["method"].as_str().unwrap();
        let params = line["request"]["params"].to_string().replace(recorded_account, &own_account);
        let params: Value = serde_json::from_str(&params).unwrap();
        let answer = dev.ask(method, params.clone());
        match (method, &line["response"]) {
            ("personal_newAccount", _) => own_account = answer["result"].as_str().unwrap().into(),
            // Two parameters are accepted here, and a string is not a transaction.
            ("personal_unlockAccount", recorded)
                if recorded["error"]["message"] == json!("method parameters invalid") => {}
            ("eth_sendTransaction", _) if params == json!(["x"]) => {
                assert_eq!(answer["error"]["code"], json!(-32602));
            }
            // The key differs.
            ("eth_sign", recorded) if params[0] == json!(own_account) && recorded["result"].is_string() => {
                assert_eq!(answer["result"].as_str().unwrap().len(), 132);
            }
            // The reference node had further accounts.
            ("eth_accounts" | "personal_listAccounts", recorded) => {
                let own = answer["result"].as_array().unwrap();
                assert_eq!(own[..10], recorded["result"].as_array().unwrap()[..10]);
            }
            (_, recorded) if is_named_failure(recorded, &answer) => {}
            (_, recorded) => {
                assert!(agree(recorded, &answer), "{method} {params}: {answer}, recorded {recorded}");
                equal += 1;
            }
        }
    }
    println!("{equal} answers equal");
    assert!(equal >= 32);
    for line in lines(&shared, "evm.jsonl") {
        let method = line["request"]["method"].as_str().unwrap();
        assert_eq!(dev.get(method, line["request"]["params"].clone()), line["response"]["result"]);
    }
}

/// Methods whose answers are compared elsewhere, differ deliberately (docs/differences.md), or describe this program.
const OWN: &[&str] = &[
    "web3_clientVersion",
    "rpc_modules",
    "eth_accounts",
    "personal_listAccounts",
    "mnr_getWork",
    "trace_transaction",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleByBlockHashAndIndex",
];

#[test]
fn reads_of_an_executed_chain_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let mut dev = recorded_chain(&shared, 642);
    let (mut equal, mut refused) = (0, 0);
    for file in ["rpc_info.jsonl", "rpc_blocks.jsonl", "rpc_txs.jsonl", "rpc_state.jsonl"] {
        for line in lines(&shared, file) {
            let (method, params) =
                (line["request"]["method"].as_str().unwrap_or_default(), &line["request"]["params"]);
            let recorded = &line["response"];
            let pending = params[0] == json!("pending");
            let own = OWN.contains(&method) || method.starts_with("sco_") || method == "eth_getCompilers";
            if recorded["result"].is_null() || own || pending {
                continue;
            }
            let answer = dev.ask(method, params.clone());
            if answer["error"]["code"] == json!(-32602) {
                // A spelling that only the reference node accepts.
                assert!(
                    params[0].as_str().is_some_and(|p| !p.starts_with("0x")),
                    "{method} {params}: {answer}"
                );
                println!("{method} {params}");
                refused += 1;
                continue;
            }
            assert_eq!(answer["result"], recorded["result"], "{method} {params}");
            equal += 1;
        }
    }
    println!("{equal} results equal, {refused} refused");
    assert!(equal > 300 && refused < 5);
}
