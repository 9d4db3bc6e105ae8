//! Reads accounts, codes and storage from recorded trie nodes and compares them with the answers of the
//! reference node.

use crate::support;

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use rootlight::state::{StateError, StateKey, StateReader, TrieState, keys};
use serde_json::Value;
use support::chain::{RecordedChain, hash, lines, text};
use support::*;

/// A reader that has the nodes of one recorded proof only.
fn proof_state(proof: &Value) -> TrieState<BTreeMap<B256, Bytes>> {
    let mut nodes = BTreeMap::new();
    for node in proof["nodes"].as_array().unwrap() {
        let node = bytes(node.as_str().unwrap());
        nodes.insert(keccak256(&node), node);
    }
    if let Some(value) = proof["value"].as_str().map(bytes).filter(|value| value.len() > 32) {
        nodes.insert(keccak256(&value), value);
    }
    TrieState::new(nodes, hash(text(proof, "root")))
}

/// Each recorded proof alone is sufficient to read its key.
#[test]
fn every_recorded_proof_reads_as_recorded() {
    let Some(shared) = shared() else { return };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for proof in lines(&shared.join("vectors/chain/state_proofs.jsonl")) {
        let Some(address) = proof["address"].as_str() else { continue };
        let address: Address = address.parse().unwrap();
        let state = proof_state(&proof);
        let value = proof["value"].as_str().map(bytes);
        let key = bytes(text(&proof, "key"));
        let kind = text(&proof, "kind");
        *counts.entry(kind.into()).or_default() += 1;
        match kind {
            "account" => {
                assert_eq!(key[..], keys::account_key(&address));
                let account = state.account(&address).unwrap();
                assert_eq!(account.is_some(), value.is_some());
                let Some(account) = account else { continue };
                assert_eq!(account.nonce.to_string(), text(&proof, "nonce"));
                assert_eq!(account.balance.to_string(), text(&proof, "balance"));
            }
            "code" => {
                assert_eq!(key[..], keys::code_key(&address));
                let code = value.unwrap_or_default();
                assert_eq!(state.code(&address).unwrap(), code);
                if let Some(account) = state.account(&address).unwrap() {
                    let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(&code) };
                    assert_eq!((account.code_hash, account.code_size as usize), (code_hash, code.len()));
                }
            }
            "storageRoot" => {
                assert_eq!(key[..], keys::storage_root_key(&address));
                assert_eq!(state.is_contract(&address).unwrap(), value.is_some());
            }
            "storage" => {
                let slot = u256(text(&proof, "slot"));
                assert_eq!(key[..], keys::slot_key(&address, &slot)[..]);
                assert_eq!(state.storage(&address, &slot).unwrap(), value.unwrap_or_default());
                // The marker is on the path to every slot.
                state.is_contract(&address).unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(counts.values().sum::<usize>(), 560, "{counts:?}");
}

/// If any node of a proof is missing, the fact is reported as missing and never as absent.
#[test]
fn a_missing_node_is_never_read_as_absence() {
    let Some(shared) = shared() else { return };
    for proof in lines(&shared.join("vectors/chain/state_proofs.jsonl")).iter().step_by(7) {
        let Some(address) = proof["address"].as_str() else { continue };
        let address: Address = address.parse().unwrap();
        let nodes: Vec<Bytes> =
            proof["nodes"].as_array().unwrap().iter().map(|node| bytes(node.as_str().unwrap())).collect();
        let info = proof["info"].as_array().unwrap();
        for (skip, shown) in info.iter().enumerate() {
            if shown["embedded"] == true {
                continue;
            }
            let left = nodes.iter().enumerate().filter(|(n, _)| *n != skip).map(|(_, node)| node);
            let left: BTreeMap<B256, Bytes> = left.map(|node| (keccak256(node), node.clone())).collect();
            let state = TrieState::new(left, hash(text(proof, "root")));
            let missing = StateError::Missing;
            match text(proof, "kind") {
                "account" => {
                    assert_eq!(state.account(&address), Err(missing(StateKey::Account(address))));
                }
                "storage" => {
                    let slot = u256(text(proof, "slot"));
                    assert_eq!(
                        state.storage(&address, &slot),
                        Err(missing(StateKey::Storage(address, slot)))
                    );
                }
                "storageRoot" => {
                    let fact = StateKey::Storage(address, U256::ZERO);
                    assert_eq!(state.is_contract(&address), Err(missing(fact)));
                }
                _ => {
                    assert_eq!(state.code(&address), Err(missing(StateKey::Account(address))));
                }
            }
        }
    }
}

/// The state methods of the reference node, at the blocks whose state is recorded.
#[test]
fn state_methods_equal_the_node() {
    let Some(shared) = shared() else { return };
    let vectors = shared.join("vectors");
    let chain = RecordedChain::load(&vectors);
    let (mut equal, mut skipped) = (0, BTreeMap::<String, usize>::new());
    for line in lines(&vectors.join("chain/rpc_state.jsonl")) {
        let (request, response) = (&line["request"], &line["response"]);
        let params = request["params"].as_array().unwrap();
        let Some(want) =
            response["result"].as_str().map(str::to_owned).or(response["result"].is_null().then(String::new))
        else {
            *skipped.entry("no result".into()).or_default() += 1;
            continue;
        };
        if response.get("error").is_some() {
            *skipped.entry("error".into()).or_default() += 1;
            continue;
        }
        let Some(number) = params.last().and_then(block_number) else {
            *skipped.entry(format!("selector {}", params.last().unwrap())).or_default() += 1;
            continue;
        };
        let Ok(address) = params[0].as_str().unwrap_or("").parse::<Address>() else {
            *skipped.entry("address".into()).or_default() += 1;
            continue;
        };
        if !chain.nodes.contains_key(&chain.root(number)) {
            *skipped.entry("state not recorded".into()).or_default() += 1;
            continue;
        }
        let state = TrieState::new(&chain.nodes, chain.root(number));
        let slot = slot(&params[1]);
        if text(request, "method").contains("Storage") && slot.is_none() {
            *skipped.entry(format!("slot {}", params[1])).or_default() += 1;
            continue;
        }
        let slot = slot.unwrap_or_default();
        let got = match text(request, "method") {
            "eth_getBalance" => {
                format!(
                    "{:#x}",
                    state.account(&address).unwrap().map_or(U256::ZERO, |account| account.balance)
                )
            }
            "eth_getTransactionCount" => {
                format!("{:#x}", state.account(&address).unwrap().map_or(0, |account| account.nonce))
            }
            "eth_getCode" => state.code(&address).unwrap().to_string(),
            "eth_getStorageAt" => {
                let value = state.storage(&address, &slot).unwrap();
                if value.len() > 32 {
                    *skipped.entry("eth_getStorageAt of a long value".into()).or_default() += 1;
                    continue;
                }
                format!("{:#066x}", U256::from_be_slice(&value))
            }
            _ => {
                let value = state.storage(&address, &slot).unwrap();
                if value.is_empty() { "0x0".into() } else { value.to_string() }
            }
        };
        let normal = |text: &str| text.trim_start_matches("0x").trim_start_matches('0').to_owned();
        assert_eq!(normal(&got), normal(&want), "{line}");
        equal += 1;
    }
    println!("equal {equal}, skipped {skipped:?}");
    assert_eq!(equal, 160);
}

fn slot(param: &Value) -> Option<U256> {
    let text = param.as_str()?;
    match text.strip_prefix("0x") {
        Some(hex) => U256::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Block number of a selector. The head of the recording is block 642.
fn block_number(selector: &Value) -> Option<u64> {
    let text = selector.as_str()?;
    match text {
        "latest" => Some(0x282),
        "earliest" => Some(0),
        _ => {
            let number = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
            (number <= 0x282 && text.len() < 10).then_some(number)
        }
    }
}
