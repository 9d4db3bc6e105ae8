//! `rootlight verify` on valid data, and on data with one thing wrong.

use crate::common;

use alloy_primitives::hex;
use rootlight::consensus::Network;
use rootlight::types::block::encode_block;
use rootlight::types::json as types_json;
use rootlight::verify::{DocumentSubject, Report, verify};
use rootlight_upstream::replay::Replay;
use serde_json::{Value, json};

/// The recording in this repository.
fn embedded() -> Replay {
    let bytes =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../recordings/regtest.jsonl.gz")).unwrap();
    Replay::from_gzip("embedded", &bytes).unwrap()
}

fn ask(replay: &Replay, method: &str, params: Value) -> Value {
    let params = params.as_array().unwrap().clone();
    serde_json::from_str(replay.answer(method, &params).unwrap().get()).unwrap()
}

fn check(subject: DocumentSubject, input: &Value) -> Report {
    let text = match input {
        Value::String(hex) => hex.clone(),
        other => other.to_string(),
    };
    verify(subject, text.as_bytes(), &Network::regtest())
}

fn good(subject: DocumentSubject, input: &Value) -> Report {
    let report = check(subject, input);
    assert!(report.verified(), "{report}\n{input}");
    report
}

/// Checks that verification of an input fails at this step for this reason.
fn bad(subject: DocumentSubject, input: &Value, what: &str, reason: &str) {
    let report = check(subject, input);
    assert!(!report.verified(), "{report}");
    let failed = report.failed.as_ref().unwrap();
    assert_eq!(failed.what, what, "{report}");
    assert!(failed.reason.contains(reason), "{report}");
}

fn block(replay: &Replay, number: u64) -> Value {
    ask(replay, "eth_getBlockByNumber", json!([format!("{number:#x}"), true]))
}

fn with(value: &Value, field: &str, new: Value) -> Value {
    let mut value = value.clone();
    value[field] = new;
    value
}

/// Changes the last digit of a hex string.
fn changed(value: &Value) -> Value {
    let text = value.as_str().unwrap();
    let last = if text.ends_with('1') { "2" } else { "1" };
    format!("{}{last}", &text[..text.len() - 1]).into()
}

#[test]
fn every_recorded_block_and_header_verifies() {
    let replay = embedded();
    for number in 0..=replay.head().unwrap() {
        let block = block(&replay, number);
        let report = good(DocumentSubject::Block, &block);
        let count = block["transactions"].as_array().unwrap().len();
        assert!(
            report
                .proven()
                .iter()
                .any(|found| found.what == "transactions" && found.value == format!("{count} in order"))
        );
        good(DocumentSubject::Header, &block);
        let response = json!({"jsonrpc": "2.0", "id": 1, "result": block});
        good(DocumentSubject::Block, &response);
        good(DocumentSubject::Block, &json!({"request": {}, "response": response}));
    }
}

#[test]
fn consecutive_headers_verify_and_a_gap_does_not() {
    let replay = embedded();
    let headers: Vec<Value> = (1..=60).map(|number| block(&replay, number)).collect();
    let report = good(DocumentSubject::Header, &json!(headers));
    assert_eq!(report.proven()[0].value, "60, blocks 1 to 60");
    let mut gap = headers.clone();
    gap.remove(30);
    bad(DocumentSubject::Header, &json!(gap), "header rules", "block 32: parentHash");
    bad(DocumentSubject::Header, &json!([]), "input", "array of 1 to");
}

#[test]
fn headers_with_one_wrong_field_are_refused() {
    let replay = embedded();
    let block = block(&replay, 30);
    for field in
        ["parentHash", "stateRoot", "gasUsed", "timestamp", "bitcoinMergedMiningHeader", "hash", "extraData"]
    {
        bad(DocumentSubject::Header, &with(&block, field, changed(&block[field])), "header", "has the hash");
    }
    // These two fields are covered by the proof of work, not by the hash.
    for field in ["bitcoinMergedMiningMerkleProof", "bitcoinMergedMiningCoinbaseTransaction"] {
        if block[field].as_str().unwrap().len() > 4 {
            bad(
                DocumentSubject::Header,
                &with(&block, field, changed(&block[field])),
                "header rules",
                "Merkle",
            );
        }
    }
    let raw = ask(&replay, "rsk_getRawBlockHeaderByNumber", json!(["0x1e"]));
    bad(DocumentSubject::Header, &raw, "merged mining", "no coinbase");
    bad(DocumentSubject::Header, &json!("0xc0"), "header", "");
    bad(DocumentSubject::Header, &json!({"number": "0x1"}), "header", "");
    bad(DocumentSubject::Header, &json!({"jsonrpc": "2.0", "id": 1, "result": null}), "input", "no result");
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "boom"}});
    bad(DocumentSubject::Header, &error, "input", "boom");
    for text in [&b"zz"[..], b"{", b"\xff\xfe", b"{\"a\":", b"[1", b"\"0x1\"", b"[[[["] {
        assert!(!verify(DocumentSubject::Header, text, &Network::regtest()).verified());
    }
}

#[test]
fn recorded_headers_of_the_main_network_verify() {
    let Some(path) = common::shared("realdata/headers/mainnet_4479841_iris_run1200.json") else { return };
    let data: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let headers: Vec<Value> =
        data["headers"].as_array().unwrap().iter().map(|header| header["rlp"].clone()).collect();
    let mainnet = Network::mainnet();
    let report = verify(DocumentSubject::Header, json!(headers).to_string().as_bytes(), &mainnet);
    assert!(report.verified(), "{report}");
    let single = verify(DocumentSubject::Header, headers[7].as_str().unwrap().as_bytes(), &mainnet);
    assert!(single.verified() && single.to_string().contains(data["headers"][7]["hash"].as_str().unwrap()));
    let regtest =
        verify(DocumentSubject::Header, headers[7].as_str().unwrap().as_bytes(), &Network::regtest());
    assert!(!regtest.verified(), "{regtest}");
}

#[test]
fn blocks_with_one_wrong_part_are_refused() {
    let replay = embedded();
    let block = block(&replay, 41);
    let transactions = block["transactions"].as_array().unwrap().clone();
    let mut swapped = transactions.clone();
    swapped.swap(0, 1);
    let mut missing = transactions.clone();
    missing.pop();
    for list in [swapped, missing, vec![]] {
        bad(DocumentSubject::Block, &with(&block, "transactions", json!(list)), "transactions", "");
    }
    let hashes: Vec<Value> = transactions.iter().map(|transaction| transaction["hash"].clone()).collect();
    bad(DocumentSubject::Block, &with(&block, "transactions", json!(hashes)), "transactions", "only hashes");
    let mut forged = transactions.clone();
    forged[0]["value"] = json!("0x7777");
    bad(DocumentSubject::Block, &with(&block, "transactions", json!(forged)), "block", "");
    let receipts: Vec<Value> = transactions
        .iter()
        .map(|tx| ask(&replay, "eth_getTransactionReceipt", json!([tx["hash"]])))
        .collect();
    good(DocumentSubject::Block, &json!({"block": block, "receipts": receipts}));
    let mut forged = receipts.clone();
    forged[0]["gasUsed"] = json!("0x1");
    bad(DocumentSubject::Block, &json!({"block": block, "receipts": forged}), "receipts", "");
    bad(DocumentSubject::Block, &json!({"block": block, "receipts": receipts[1..]}), "receipts", "");
}

#[test]
fn raw_blocks_verify_and_changed_bytes_do_not() {
    let replay = embedded();
    let regtest = Network::regtest();
    for number in [0, 3, 62, 73] {
        let block = block(&replay, number).to_string();
        let parsed =
            types_json::block_from_json(&block, None, &|n| regtest.header_shape(n), regtest.chain_id)
                .unwrap();
        let uncles: Vec<_> = (0..parsed.uncles.len())
            .map(|index| {
                ask(
                    &replay,
                    "eth_getUncleByBlockNumberAndIndex",
                    json!([format!("{number:#x}"), format!("{index:#x}")]),
                )
            })
            .map(|uncle| {
                types_json::header_from_json(&uncle.to_string(), None, &|n| regtest.header_shape(n))
                    .unwrap()
                    .into_header()
            })
            .collect();
        let mut bytes =
            encode_block(parsed.header.header(), &parsed.transactions.into_full().unwrap(), &uncles);
        let report = good(DocumentSubject::Block, &json!(hex::encode_prefixed(&bytes)));
        assert!(report.not_proven.len() == 1, "{report}");
        good(DocumentSubject::Block, &json!({"jsonrpc": "2.0", "result": hex::encode(&bytes)}));
        for at in (0..bytes.len()).step_by(bytes.len() / 50) {
            bytes[at] ^= 1;
            // Raw bytes state no hash. The difficulty of this network is minimal, so a changed Bitcoin header
            // can be another valid block with another hash.
            let other = check(DocumentSubject::Block, &json!(hex::encode_prefixed(&bytes)));
            assert!(
                !other.verified() || other.proven()[0].value != report.proven()[0].value,
                "byte {at}: {other}"
            );
            bytes[at] ^= 1;
        }
    }
}

#[test]
fn uncles_must_match_the_block() {
    let replay = embedded();
    let block = block(&replay, 73);
    let report = good(DocumentSubject::Block, &block);
    assert!(report.not_proven.iter().any(|note| note.to_string().contains("1 uncle hashes")), "{report}");
    let uncle = ask(&replay, "eth_getUncleByBlockNumberAndIndex", json!(["0x49", "0x0"]));
    let report = good(DocumentSubject::Block, &json!({"block": block, "uncles": [uncle]}));
    assert!(report.proven().iter().any(|found| found.what == "uncles"), "{report}");
    good(DocumentSubject::Header, &uncle);
    bad(DocumentSubject::Block, &json!({"block": block, "uncles": []}), "uncles", "");
    let other = self::block(&replay, 72);
    bad(DocumentSubject::Block, &json!({"block": block, "uncles": [other]}), "uncles", "");
}

#[test]
fn every_recorded_receipt_verifies() {
    let replay = embedded();
    let mut count = 0;
    for number in 1..=61 {
        let block = block(&replay, number);
        for transaction in block["transactions"].as_array().unwrap() {
            let hash = &transaction["hash"];
            let receipt = ask(&replay, "eth_getTransactionReceipt", json!([hash]));
            let nodes = ask(&replay, "rsk_getTransactionReceiptNodesByHash", json!([block["hash"], hash]));
            let raw = ask(&replay, "rsk_getRawTransactionReceiptByHash", json!([hash]));
            let report =
                good(DocumentSubject::Receipt, &json!({"receipt": receipt, "nodes": nodes, "header": block}));
            let index = u64::from_str_radix(&receipt["transactionIndex"].as_str().unwrap()[2..], 16).unwrap();
            assert!(
                report
                    .proven()
                    .iter()
                    .any(|found| found.value == format!("of the transaction at index {index}"))
            );
            good(
                DocumentSubject::Receipt,
                &json!({"rawReceipt": raw, "nodes": nodes, "receiptsRoot": block["receiptsRoot"]}),
            );
            // The format that the browser module accepts.
            let list = json!({"jsonrpc": "2.0", "id": 1, "result": nodes});
            good(
                DocumentSubject::Receipt,
                &json!({"receipt": raw, "nodes": list, "receiptsRoot": block["receiptsRoot"], "index": index}),
            );
            let other = json!({"receipt": raw, "nodes": nodes, "receiptsRoot": block["receiptsRoot"], "index": index + 1});
            bad(DocumentSubject::Receipt, &other, "receipt proof", "");
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}

#[test]
fn receipts_with_one_wrong_part_are_refused() {
    let replay = embedded();
    let block = block(&replay, 41);
    let hash = &block["transactions"][2]["hash"];
    let receipt = ask(&replay, "eth_getTransactionReceipt", json!([hash]));
    let nodes = ask(&replay, "rsk_getTransactionReceiptNodesByHash", json!([block["hash"], hash]));
    let proof = json!({"receipt": receipt, "nodes": nodes, "header": block});
    good(DocumentSubject::Receipt, &proof);
    let with_receipt = |field: &str, value: Value| with(&proof, "receipt", with(&receipt, field, value));
    bad(DocumentSubject::Receipt, &with_receipt("gasUsed", json!("0x1")), "receipt proof", "");
    bad(DocumentSubject::Receipt, &with_receipt("status", json!("0x0")), "receipt proof", "");
    bad(DocumentSubject::Receipt, &with_receipt("transactionIndex", json!("0x1")), "receipt proof", "");
    bad(DocumentSubject::Receipt, &with_receipt("transactionIndex", json!("x")), "input", "transactionIndex");
    bad(DocumentSubject::Receipt, &with_receipt("blockHash", changed(&block["hash"])), "blockHash", "");
    bad(DocumentSubject::Receipt, &with(&proof, "nodes", json!([])), "receipt proof", "");
    bad(DocumentSubject::Receipt, &with(&proof, "nodes", json!(["0x"])), "receipt proof", "");
    bad(
        DocumentSubject::Receipt,
        &with(&proof, "receiptsRoot", block["stateRoot"].clone()),
        "receiptsRoot",
        "the header has",
    );
    bad(DocumentSubject::Receipt, &with(&proof, "header", self::block(&replay, 42)), "receipt proof", "");
    bad(
        DocumentSubject::Receipt,
        &json!({"receipt": receipt, "nodes": nodes}),
        "input",
        "receiptsRoot or header",
    );
    bad(DocumentSubject::Receipt, &json!({"nodes": nodes, "header": block}), "input", "exactly one");
    for at in 0..nodes.as_array().unwrap().len() {
        let mut list = nodes.clone();
        list[at] = changed(&list[at]);
        assert!(!check(DocumentSubject::Receipt, &with(&proof, "nodes", list)).verified());
    }
}

/// Finds a contract with storage in the recording, by its storage proof.
fn contract(replay: &Replay, number: u64) -> (Value, Value) {
    let tag = format!("{number:#x}");
    for height in 1..=number {
        for transaction in block(replay, height)["transactions"].as_array().unwrap() {
            let receipt = ask(replay, "eth_getTransactionReceipt", json!([transaction["hash"]]));
            if !receipt["contractAddress"].is_string() {
                continue;
            }
            let slots = ["0x0", "0x1", "0x2", "0x3", "0x77"];
            let proof = ask(replay, "eth_getProof", json!([receipt["contractAddress"], slots, tag]));
            let stored = proof["storageProof"].as_array().unwrap().iter().any(|slot| slot["value"] != "0x0");
            if stored {
                return (proof, block(replay, number));
            }
        }
    }
    panic!("no contract with storage");
}

#[test]
fn accounts_verify_present_and_absent() {
    let replay = embedded();
    let head = replay.head().unwrap();
    let (proof, block) = contract(&replay, head);
    let report = good(DocumentSubject::Account, &json!({"proof": proof, "header": block}));
    for what in ["account", "balance", "nonce", "code hash", "storage hash", "slot 0x0", "slot 0x77"] {
        assert!(report.proven().iter().any(|found| found.what == what), "{what}: {report}");
    }
    let report = good(DocumentSubject::Account, &with(&proof, "stateRoot", block["stateRoot"].clone()));
    assert!(report.not_proven[0].to_string().contains("state root itself"));
    let absent = ask(
        &replay,
        "eth_getProof",
        json!(["0x9999999999999999999999999999999999999999", ["0x0"], format!("{head:#x}")]),
    );
    let report = good(DocumentSubject::Account, &json!({"proof": absent, "header": block}));
    assert!(report.to_string().contains("does not exist"), "{report}");
    for address in [
        "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826",
        "0x0000000000000000000000000000000001000006",
        "0x0000000000000000000000000000000001000008",
    ] {
        let proof = ask(&replay, "eth_getProof", json!([address, [], format!("{head:#x}")]));
        good(
            DocumentSubject::Account,
            &json!({"proof": {"jsonrpc": "2.0", "id": 1, "result": proof}, "header": block}),
        );
    }
}

#[test]
fn accounts_with_one_wrong_part_are_refused() {
    let replay = embedded();
    let (proof, block) = contract(&replay, replay.head().unwrap());
    let wrap = |proof: Value| json!({"proof": proof, "header": block});
    for field in ["balance", "nonce", "codeHash", "storageHash"] {
        bad(DocumentSubject::Account, &wrap(with(&proof, field, changed(&proof[field]))), field, "stated as");
    }
    let mut slots = proof["storageProof"].clone();
    let at = slots.as_array().unwrap().iter().position(|slot| slot["value"] != "0x0").unwrap();
    slots[at]["value"] = changed(&slots[at]["value"]);
    bad(
        DocumentSubject::Account,
        &wrap(with(&proof, "storageProof", slots.clone())),
        "storageProof.value",
        "proven is",
    );
    slots = proof["storageProof"].clone();
    slots[at]["key"] = json!("0x5555");
    bad(DocumentSubject::Account, &wrap(with(&proof, "storageProof", slots.clone())), "storageProof", "");
    slots[at]["proof"] = json!([]);
    bad(
        DocumentSubject::Account,
        &wrap(with(&proof, "storageProof", slots)),
        "storageProof",
        "empty list proves nothing",
    );
    bad(
        DocumentSubject::Account,
        &wrap(with(&proof, "accountProof", json!([]))),
        "accountProof",
        "empty list proves nothing",
    );
    let stranger = json!("0x9999999999999999999999999999999999999999");
    bad(DocumentSubject::Account, &wrap(with(&proof, "address", stranger)), "accountProof", "");
    bad(DocumentSubject::Account, &wrap(with(&proof, "address", json!("0x12"))), "input", "address");
    bad(DocumentSubject::Account, &proof, "input", "stateRoot or header");
    for at in 0..proof["accountProof"].as_array().unwrap().len() {
        let mut list = proof["accountProof"].clone();
        list[at] = changed(&list[at]);
        assert!(!check(DocumentSubject::Account, &wrap(with(&proof, "accountProof", list))).verified());
    }
    let older = self::block(&replay, 5);
    assert!(!check(DocumentSubject::Account, &json!({"proof": proof, "header": older})).verified());
}

/// The format of the reference node's draft: proofs start at the leaf, list embedded nodes, and are empty for
/// absent keys.
#[test]
fn proofs_in_the_reference_nodes_draft_format_verify_unless_empty() {
    let Some(path) = common::shared("vectors/getproof_draft.json") else { return };
    let data: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (mut verified, mut refused) = (0, 0);
    for entry in data["proofs"].as_array().unwrap().iter().filter(|entry| entry["method"] == "eth_getProof") {
        let proof = &entry["resp"]["result"];
        if !proof.is_object() || entry["params"][2] != data["block"]["number"] {
            continue;
        }
        let report =
            check(DocumentSubject::Account, &with(proof, "stateRoot", data["block"]["stateRoot"].clone()));
        let without = |list: &Value| list.as_array().unwrap().is_empty();
        let lacking = without(&proof["accountProof"])
            || proof["storageProof"].as_array().unwrap().iter().any(|slot| without(&slot["proof"]));
        assert_eq!(report.verified(), !lacking, "{report}");
        *(if lacking { &mut refused } else { &mut verified }) += 1;
    }
    assert!(verified > 0 && refused > 0, "{verified} {refused}");
}

fn run(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let output = common::run_with(arguments, input);
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn the_command_prints_reports_and_sets_exit_codes() {
    let replay = embedded();
    let block = block(&replay, 30);
    let text = block.to_string();
    let (code, out, err) = run(&["verify", "block", "-", "--network", "regtest"], &text);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("block on regtest\n") && out.ends_with("verified\n"), "{out}");
    assert!(out.contains("merged mining") && out.contains("transactions root"), "{out}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("block.json");
    let broken = with(&block, "stateRoot", changed(&block["stateRoot"]));
    std::fs::write(&file, broken.to_string()).unwrap();
    let (code, out, err) = run(&["verify", "header", file.to_str().unwrap(), "--network", "regtest"], "");
    assert_eq!((code, err.as_str()), (Some(1), ""));
    assert!(out.contains("FAILED      header:") && out.ends_with("not verified\n"), "{out}");
    let (code, out, _) =
        run(&["verify", "header", file.to_str().unwrap(), "--network", "regtest", "--json"], "");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &value["verified"], &value["failed"]["what"]),
        (Some(1), &json!(false), &json!("header"))
    );
    let (code, out, _) = run(&["verify", "block", "-", "--network", "regtest", "--json"], &text);
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &value["verified"], &value["subject"]), (Some(0), &json!(true), &json!("block")));

    assert_eq!(run(&["verify", "header", "/nowhere"], "").0, Some(1));
    for usage in [
        &["verify"][..],
        &["verify", "thing", "-"],
        &["verify", "header"],
        &["verify", "header", "-", "--network", "moon"],
    ] {
        assert_eq!(run(usage, "").0, Some(2), "{usage:?}");
    }
    assert!(run(&["verify", "--help"], "").1.contains("Formats"));
}

#[test]
fn control_characters_of_the_input_are_not_printed() {
    let report = verify(
        DocumentSubject::Header,
        b"{\"jsonrpc\":\"2.0\",\"error\":\"\\u001b[2J\x1b[2J\"}",
        &Network::regtest(),
    );
    assert!(!report.to_string().contains('\x1b'));
}
