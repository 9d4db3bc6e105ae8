//! State proofs built from recorded trie nodes verify and agree with the values that the reference node
//! returned.

use crate::common;
use crate::replay::ask;

use std::io::{BufRead, BufReader};
use std::path::Path;

use alloy_primitives::{Address, B256, hex};
use rootlight::state::keys::{account_key, slot_key};
use rootlight::trie::verify_proof;
use rootlight_upstream::UpstreamError;
use rootlight_upstream::replay::Replay;
use serde_json::{Value, json};

fn nodes(list: &Value) -> Vec<Vec<u8>> {
    list.as_array().unwrap().iter().map(|node| hex::decode(node.as_str().unwrap()).unwrap()).collect()
}

fn lines(path: &Path) -> impl Iterator<Item = Value> + use<> {
    let file = std::fs::File::open(path).unwrap();
    BufReader::new(file).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

#[test]
fn accounts_of_recorded_trie_paths_are_proven_present_or_absent() {
    let Some(path) = common::shared("vectors/chain") else { return };
    let replay = Replay::open(&path).unwrap();
    let mut counts = [0; 2];
    for line in lines(&path.join("state_proofs.jsonl")).filter(|line| line["kind"] == "account") {
        let (number, root) =
            (line["block"].as_u64().unwrap(), line["root"].as_str().unwrap().parse::<B256>().unwrap());
        let (hash, known) = replay.block(number).unwrap();
        assert_eq!(root, known);
        let address: Address = line["address"].as_str().unwrap().parse().unwrap();
        let selectors = [
            json!(format!("{number:#x}")),
            json!(hex::encode_prefixed(hash)),
            json!({"blockHash": hex::encode_prefixed(hash)}),
        ];
        let mut answers = selectors
            .iter()
            .map(|block| ask(&replay, "eth_getProof", json!([address.to_string(), [], block])).unwrap());
        let answer = answers.next().unwrap();
        assert!(answers.all(|other| other == answer));
        let proof = nodes(&answer["accountProof"]);
        let proven = verify_proof(root, &account_key(&address), &proof, None).unwrap();
        if line["outcome"] == "present" {
            counts[0] += 1;
            assert_eq!(hex::encode_prefixed(proven.value().unwrap()), line["value"]);
            let quantity = |text: &Value| format!("{:#x}", text.as_str().unwrap().parse::<u128>().unwrap());
            assert_eq!(
                (answer["nonce"].clone(), answer["balance"].clone()),
                (quantity(&line["nonce"]).into(), quantity(&line["balance"]).into())
            );
        } else {
            counts[1] += 1;
            assert_eq!(proven.value(), None);
            assert_eq!(answer["codeHash"], json!(hex::encode_prefixed(B256::ZERO)));
        }
    }
    assert!(counts[0] > 50 && counts[1] > 5, "{counts:?}");
}

/// Nonce, balance, code and storage are those that the node returned, at all recorded heights.
#[test]
fn proofs_agree_with_the_values_that_the_reference_node_returned() {
    let Some(path) = common::shared("vectors/chain") else { return };
    let replay = Replay::open(&path).unwrap();
    let mut counts = [0; 4];
    for line in lines(&path.join("rpc_state.jsonl")) {
        let (request, result) = (&line["request"], &line["response"]["result"]);
        let (method, params) = (request["method"].as_str().unwrap_or(""), request["params"].clone());
        let Some(block) = params.as_array().and_then(|params| params.last()).and_then(Value::as_str) else {
            continue;
        };
        let fixed = block.starts_with("0x") && block.len() <= 5;
        if !fixed || !result.is_string() {
            continue;
        }
        let well_formed = params[0].as_str().is_some_and(|address| address.len() == 42);
        let Ok(proof) = ask(&replay, "eth_getProof", json!([params[0], [], block])) else { continue };
        assert!(well_formed);
        match method {
            "eth_getBalance" => {
                counts[0] += 1;
                assert_eq!(proof["balance"], *result, "{line}");
            }
            "eth_getTransactionCount" => {
                counts[1] += 1;
                assert_eq!(proof["nonce"], *result);
            }
            "eth_getCode" => {
                counts[2] += 1;
                let code = hex::decode(result.as_str().unwrap()).unwrap();
                let hash = alloy_primitives::keccak256(&code);
                assert!(proof["codeHash"] == json!(hex::encode_prefixed(hash)) || code.is_empty());
            }
            "eth_getStorageAt" => {
                counts[3] += 1;
                let proof = ask(&replay, "eth_getProof", json!([params[0], [params[1]], block])).unwrap();
                let number = |text: &Value| {
                    text.as_str().unwrap().trim_start_matches("0x").trim_start_matches('0').to_owned()
                };
                assert_eq!(number(&proof["storageProof"][0]["value"]), number(result));
                let (_, root) = replay.block(u64::from_str_radix(&block[2..], 16).unwrap()).unwrap();
                let slot =
                    alloy_primitives::U256::from_str_radix(&params[1].as_str().unwrap()[2..], 16).unwrap();
                let address: Address = params[0].as_str().unwrap().parse().unwrap();
                let list = nodes(&proof["storageProof"][0]["proof"]);
                verify_proof(root, &slot_key(&address, &slot), &list, None).unwrap();
            }
            _ => {}
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    println!("{counts:?}");
}

#[test]
fn accounts_are_proven_in_every_recorded_state() {
    let Some(path) = common::shared("vectors/chain") else { return };
    let replay = Replay::open(path).unwrap();
    let bridge = "0x0000000000000000000000000000000001000006";
    for number in 0..=647_u64 {
        let tag = format!("{number:#x}");
        let answer = ask(&replay, "eth_getProof", json!([bridge, ["0x0"], tag])).unwrap();
        let (_, root) = replay.block(number).unwrap();
        verify_proof(root, &account_key(&bridge.parse().unwrap()), &nodes(&answer["accountProof"]), None)
            .unwrap();
    }
    let error = ask(&replay, "eth_getProof", json!([bridge, [], "0x2a4"])).unwrap_err();
    assert!(matches!(error, UpstreamError::NotRecorded(_)), "the last states are not recorded");
}

#[test]
fn invalid_parameters_and_unrecorded_requests_are_different_errors() {
    let Some(path) = common::shared("vectors/chain") else { return };
    let replay = Replay::open(path).unwrap();
    let address = "0x0000000000000000000000000000000001000006";
    for params in [
        json!(["0x12", [], "0x1"]),
        json!([address, "0x0", "0x1"]),
        json!([address, [format!("0x1{}", "0".repeat(64))], "0x1"]),
        json!([address, [], {}]),
        json!([address, [], 1]),
    ] {
        let error = ask(&replay, "eth_getProof", params.clone()).unwrap_err();
        assert!(matches!(error, UpstreamError::Rpc { code: -32602, .. }), "{params}: {error}");
    }
    let error = ask(&replay, "eth_getProof", json!([address, [], "0xffffff"])).unwrap_err();
    assert!(matches!(error, UpstreamError::NotRecorded(_)));
}
