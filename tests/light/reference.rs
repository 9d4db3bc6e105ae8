//! Light clients whose upstreams have fewer methods than a Rootlight server: the reference node as it is, without
//! state proofs, and the reference node with the proofs of its draft (rskj's pull request 3460), which lists the leaf
//! first and has no nodes for absent keys.

use crate::support;

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, hex};
use rootlight::consensus::{Checkpoint, Network};
use rootlight::engine::LocalNode;
use rootlight::light::{UpstreamRequest, UpstreamResponse};
use rootlight::rpc::UNAVAILABLE;
use rootlight::state::keys::{account_key, slot_key};
use rootlight::trie::{ProvenValue, verify_proof};
use serde_json::{Value, json, value::RawValue};
use support::{
    chain::lines,
    light::{ExecutedUpstream, Light, follower},
    shared, u64_of, u256,
    upstream::{Harness, RecordedUpstream},
};

/// Methods that the reference node does not have.
const OURS: [&str; 6] = [
    "eth_getProof",
    "rsk_getProof",
    "rootlight_getHeaders",
    "rootlight_getWitness",
    "rootlight_getBlockWitness",
    "rootlight_upstreams",
];

/// Recorded requests about blocks, transactions, receipts and logs.
const BLOCKS: [&str; 9] = [
    "blocks",
    "blocks_byhash",
    "headers_raw",
    "receipt_nodes",
    "receipts",
    "receipts_raw",
    "rpc_blocks",
    "rpc_logs",
    "rpc_txs",
];

/// Recorded requests that read state.
const STATE: [&str; 3] = ["rpc_call", "rpc_precompiles", "rpc_state"];

/// Methods whose answers need state.
const ON_STATE: [&str; 8] = [
    "eth_call",
    "eth_estimateGas",
    "eth_getBalance",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getTransactionCount",
    "rsk_getStorageBytesAt",
    "trace_transaction",
];

/// Number of equal answers and of refusals, by method.
#[derive(Debug, Default)]
struct MethodCounts {
    equal: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
}

/// Sends the recorded requests of some files. Answers must equal those of the node, and refusals of state must
/// contain `words`.
fn ask(light: &mut Light, files: &[&str], words: &str) -> MethodCounts {
    let mut found = MethodCounts::default();
    for file in files {
        for line in lines(&shared().unwrap().join(format!("vectors/chain/{file}.jsonl"))) {
            let Some(method) = line["request"]["method"].as_str() else { continue };
            let params = line["request"].get("params").cloned().unwrap_or(json!([]));
            if UNAVAILABLE.contains(&method) {
                continue;
            }
            let theirs = light.upstream.call(method, &params);
            let answer = light.send(method, &params);
            let (ours, error) = (&answer["result"], &answer["error"]);
            let level = answer.get("level").and_then(Value::as_str);
            let absent = level == Some("unproven-absence") && (ours.is_null() || *ours == json!([]));
            assert!(level.is_none() || absent, "{method} {params}: {answer}");
            if error["code"] == -32002 && ON_STATE.contains(&method) {
                let text = error["message"].as_str().unwrap();
                assert!(text.contains(words), "{method} {params}: {text}");
                *found.refused.entry(method.into()).or_default() += 1;
                continue;
            }
            match theirs {
                Ok(theirs) => assert!(same(ours, &theirs), "{method} {params}: {answer}\n{theirs}"),
                Err(theirs) => assert_eq!(error["code"], theirs["code"], "{method} {params}: {answer}"),
            }
            *found.equal.entry(method.into()).or_default() += 1;
        }
    }
    println!("{found:?}");
    found
}

/// Whether two answers are equal, apart from an unknown total difficulty of a side block.
fn same(ours: &Value, theirs: &Value) -> bool {
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    if ours.get("totalDifficulty").is_some_and(Value::is_null) {
        theirs["totalDifficulty"] = ours["totalDifficulty"].take();
        ours["totalDifficulty"] = Value::Null;
    }
    ours == theirs
}

/// Blocks, transactions, receipts and logs need no state proofs. Other requests are refused with advice.
#[test]
fn a_reference_node_serves_blocks_receipts_and_logs() {
    let Some((node, _)) = follower() else { return };
    let mut upstream = ExecutedUpstream::new(node.snapshot());
    upstream.without = OURS.to_vec();
    let mut light = Light::new(Network::regtest(), upstream);
    let found = ask(&mut light, &BLOCKS, "-");
    assert!(found.refused.keys().eq(["trace_transaction"]), "{found:?}");
    assert!(found.equal.values().sum::<u64>() > 5_000, "{found:?}");
    let found = ask(&mut light, &STATE, "add an upstream that gives proofs");
    for method in ON_STATE.into_iter().filter(|method| *method != "trace_transaction") {
        assert!(found.refused[method] > 5, "{method}: {found:?}");
    }
}

/// Rewrites a proof as the draft gives it: leaf first, and no nodes for an absent key.
fn as_drafted(proof: &mut Value, root: B256, address: &Address) {
    let turn = |list: &mut Value, key: &[u8]| {
        let nodes: Vec<Vec<u8>> =
            list.as_array().unwrap().iter().map(|n| hex::decode(n.as_str().unwrap()).unwrap()).collect();
        let absent = matches!(verify_proof(root, key, &nodes, None), Ok(ProvenValue::Absent));
        let list = list.as_array_mut().unwrap();
        list.reverse();
        if absent {
            list.clear();
        }
    };
    turn(&mut proof["accountProof"], &account_key(address));
    for slot in proof["storageProof"].as_array_mut().unwrap() {
        let key = slot_key(address, &u256(slot["key"].as_str().unwrap()));
        turn(&mut slot["proof"], &key);
    }
}

/// With the draft's proofs, existing values are proven, and values that may be absent are refused with that reason.
#[test]
fn a_reference_node_with_draft_proofs_proves_existing_values() {
    let Some((node, recording)) = follower() else { return };
    let mut upstream = ExecutedUpstream::new(node.snapshot());
    upstream.without = OURS[1..].to_vec();
    let headers = recording.blocks.iter().map(|block| &block.header);
    let roots: BTreeMap<String, B256> = headers
        .flat_map(|header| {
            [format!("{:#x}", header.number), header.hash().to_string()].map(|at| (at, header.state_root))
        })
        .collect();
    upstream.change = Some(Box::new(move |call: &UpstreamRequest, answer: UpstreamResponse| {
        let Ok(raw) = &answer else { return answer };
        if call.method != "eth_getProof" {
            return answer;
        }
        let params: Value = serde_json::from_str(&call.params).unwrap();
        let mut proof: Value = serde_json::from_str(raw.get()).unwrap();
        as_drafted(
            &mut proof,
            roots[params[2].as_str().unwrap()],
            &params[0].as_str().unwrap().parse().unwrap(),
        );
        Ok(RawValue::from_string(proof.to_string()).unwrap())
    }));
    let mut light = Light::new(Network::regtest(), upstream);
    let found = ask(&mut light, &STATE, "the upstream gives no proofs of absence");
    for method in ["eth_getBalance", "eth_getCode", "eth_getStorageAt", "eth_call"] {
        assert!(found.equal[method] > 5 && found.refused[method] > 0, "{method}: {found:?}");
    }
    let status = light.call("rootlight_upstreams", &json!([])).unwrap()[0].take();
    assert!(
        status["absenceProofs"] == false && status["demerits"] == 0,
        "limited, but not misbehaviour: {status}"
    );
}

/// Proofs that were recorded from the draft itself, for the recorded block.
#[test]
fn recorded_draft_proofs_are_accepted() {
    let Some(folder) = shared() else { return };
    let text = std::fs::read_to_string(folder.join("vectors/getproof_draft.json")).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let block = &data["block"];
    let number = u64_of(block["number"].as_str().unwrap());
    let mut recording = RecordedUpstream::open(&folder.join("vectors/none"), number);
    recording.show(block);
    let recorded: Vec<&Value> =
        data["proofs"].as_array().unwrap().iter().filter(|entry| entry["method"] == "eth_getProof").collect();
    for entry in &recorded {
        keep_proofs(&mut recording, entry);
    }
    let hash = block["hash"].as_str().unwrap().parse().unwrap();
    let checkpoint = Checkpoint { number, hash, total_difficulty: None };
    let mut light = Harness::from_checkpoint(&recording, Network::regtest(), checkpoint);
    light.sync().unwrap();
    let (mut proven, mut refused) = (0, 0);
    let mut settle = |answer: Result<Value, Value>, expected: &Value, lacking: bool| match answer {
        // Zeros may be proven by the path in the account's own proof: an account without storage has no slots.
        Ok(value) => {
            assert!(value == *expected, "{value} {expected}");
            proven += 1;
        }
        Err(error) => {
            let text = error["message"].as_str().unwrap();
            assert!(lacking && text.contains("the upstream gives no proofs of absence"), "{text}");
            refused += 1;
        }
    };
    for entry in recorded {
        let (address, at, result) = (&entry["params"][0], &block["number"], &entry["resp"]["result"]);
        let lacking = |list: &Value| list.as_array().unwrap().is_empty();
        let account = lacking(&result["accountProof"]);
        settle(light.call("eth_getBalance", &json!([address, at])), &result["balance"], account);
        settle(light.call("eth_getTransactionCount", &json!([address, at])), &result["nonce"], account);
        for slot in result["storageProof"].as_array().unwrap() {
            let word = json!(format!("{:#066x}", u256(slot["value"].as_str().unwrap())));
            let answer = light.call("eth_getStorageAt", &json!([address, slot["key"], at]));
            settle(answer, &word, lacking(&slot["proof"]));
        }
    }
    println!("{proven} proven, {refused} refused");
    assert!(proven > 5 && refused > 3, "{proven} {refused}");
}

/// Stores a recorded proof under the requests that a light client sends: the account alone, each slot, all slots.
fn keep_proofs(recording: &mut RecordedUpstream, entry: &Value) {
    let (params, result) = (&entry["params"], &entry["resp"]["result"]);
    let slots = result["storageProof"].as_array().unwrap();
    let mut keep = |slots: &[Value]| {
        let keys: Vec<String> =
            slots.iter().map(|slot| format!("{:#066x}", u256(slot["key"].as_str().unwrap()))).collect();
        let answer = json!({ "accountProof": result["accountProof"], "storageProof": slots });
        recording.replace("eth_getProof", &json!([params[0], keys, params[2]]), &answer);
    };
    keep(&[]);
    keep(slots);
    slots.iter().for_each(|slot| keep(std::slice::from_ref(slot)));
}
